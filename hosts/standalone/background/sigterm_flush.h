/* sigterm_flush.h: the work to do before SIGTERM ends the process. A separate thread, which needs no GIL, does
 * all of it when the signal arrives. Then the process ends by the signal, as it would without us. A program
 * that handles SIGTERM itself keeps its handler, and nothing is done here while it has one.
 *
 *   add ──> (rest ──>) remove
 *
 * Any thread may call. In the child of a fork the parent's entries are gone. */
#ifndef KPTI_HOSTS_STANDALONE_BACKGROUND_SIGTERM_FLUSH_H
#define KPTI_HOSTS_STANDALONE_BACKGROUND_SIGTERM_FLUSH_H

#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Belongs to the caller of add, and must not move until it is removed. Initialised with zeroes. */
typedef struct kpti_sigterm_flush {
    /* Runs on the SIGTERM thread; must not call any of these functions. Any wait in it ends at UNTIL. */
    void (*act)(void *ctx, const struct timespec *until);
    void *ctx;
    int paused;
    struct kpti_sigterm_flush *next;
} kpti_sigterm_flush;

/* Returns 0, also if SIGTERM has a handler or FLUSH was added already, or an errno if there is no thread. */
int kpti_sigterm_flush_add(kpti_sigterm_flush *flush);

/* Catches SIGTERM again after the program has removed its own handler. The caller is the thread that removed
 * it, and must hold nothing that act may wait for. */
void kpti_sigterm_flush_listen(void);

/* Announces that FLUSH is about to be removed because its data is complete. A SIGTERM that arrives now waits
 * for the removal, but not for ever. The caller must hold nothing that act may wait for. */
void kpti_sigterm_flush_pause(kpti_sigterm_flush *flush);

/* It is no error if FLUSH is not in the list. After a rest, and only then, the caller may hold what act
 * waits for. */
void kpti_sigterm_flush_remove(kpti_sigterm_flush *flush);

#ifdef __cplusplus
}
#endif
#endif
