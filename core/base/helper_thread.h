/* helper_thread.h: a thread of ours beside the program's, named so. No signal is handled on it: handlers
 * belong to the program's own threads. */
#ifndef KPTI_CORE_BASE_HELPER_THREAD_H
#define KPTI_CORE_BASE_HELPER_THREAD_H

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 0, or what pthread_create answered. The caller joins it. */
int kpti_own_thread_start(pthread_t *thread, void *(*run)(void *), void *ctx);

#ifdef __cplusplus
}
#endif
#endif
