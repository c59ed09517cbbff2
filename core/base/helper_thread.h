/* helper_thread.h: a thread of kpytrace's own in the traced process, named "kpytrace". It blocks
 * all signals: signal handlers belong to the program's threads. */
#ifndef KPTI_CORE_BASE_HELPER_THREAD_H
#define KPTI_CORE_BASE_HELPER_THREAD_H

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Starts the thread. Returns 0, or the error of pthread_create. The caller joins the thread. */
int kpti_own_thread_start(pthread_t *thread, void *(*run)(void *), void *ctx);

#ifdef __cplusplus
}
#endif
#endif
