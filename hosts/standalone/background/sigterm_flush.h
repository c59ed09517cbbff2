/* sigterm_flush.h: what is handed over before SIGTERM ends the process: a thread of its own, which needs no GIL,
 * does all of it when the signal comes, and then the process dies of the signal as it would have. A program
 * that handles SIGTERM itself keeps its handler, and nothing is done here while it has it.
 *
 *   add ──> (rest ──>) remove
 *
 * Any thread. In the child of a fork those of its parent are gone. */
#ifndef KPTI_HOSTS_STANDALONE_BACKGROUND_SIGTERM_FLUSH_H
#define KPTI_HOSTS_STANDALONE_BACKGROUND_SIGTERM_FLUSH_H

#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Belongs to who adds it, and stays where it is until it is removed. Begins as zeroes. */
typedef struct kpti_farewell {
    /* On the thread; must not call any of these. What it may have to wait for, it waits for until then. */
    void (*act)(void *ctx, const struct timespec *until);
    void *ctx;
    int rests;
    struct kpti_farewell *next;
} kpti_farewell;

/* Returns 0, also where SIGTERM has a handler or FAREWELL was added already, or an errno: there is no thread. */
int kpti_farewell_add(kpti_farewell *farewell);

/* A program that had a handler of its own has none any more. On the thread that took it away; what act may wait
 * for must not be held. */
void kpti_farewell_listen(void);

/* What it hands over is about to be complete: a signal that comes now waits until it is removed, but not for
 * ever. What act may wait for must not be held. */
void kpti_farewell_rest(kpti_farewell *farewell);

/* One that is not there is no mistake. Held may be what act waits for after a rest only. */
void kpti_farewell_remove(kpti_farewell *farewell);

#ifdef __cplusplus
}
#endif
#endif
