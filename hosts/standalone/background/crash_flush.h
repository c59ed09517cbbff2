/* crash_flush.h: the last flush of streams before SIGSEGV, SIGBUS, SIGFPE or SIGABRT ends the process, so that the
 * call that crashed is in the file.
 *
 * The handler runs on the thread that crashed, uses only async-signal-safe functions, and flushes nothing
 * itself: it wakes the keeper of each stream, waits for the flushes until a deadline, restores the handler that
 * was there before (faulthandler's, or the default) and queues the signal again. So the process ends with the
 * status, the core and the messages that it would have had. Handlers use the alternate signal stack where the
 * thread has one; the main thread is given one where it has none, since a stack overflow leaves no other.
 *
 *   watch ──> unwatch
 *
 * A signal for which the program has a handler of its own is left alone, and so is one of which another handler
 * has replaced ours when unwatch restores the handlers. In the child of a fork no keeper is watched: the handler
 * only passes the signal on. */
#ifndef KPTI_HOSTS_STANDALONE_BACKGROUND_CRASH_FLUSH_H
#define KPTI_HOSTS_STANDALONE_BACKGROUND_CRASH_FLUSH_H

#include "hosts/standalone/background/service_thread.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Has the handler run KEEPER's at_interval, from now on. The keeper runs, and neither moves nor ends before
 * unwatch. CHAINED has the bit 1 << number of each signal whose present handler may run after ours; without it
 * ours replaces the default only. Any thread; not from a signal handler. Of more keepers than 8, those after the
 * eighth are not flushed. */
void kpti_crash_watch(kpti_keeper *keeper, uint32_t chained);

/* The handler does not use KEEPER any more; the last keeper's removal restores the handlers. A keeper that is not
 * watched is no error. */
void kpti_crash_unwatch(kpti_keeper *keeper);

#ifdef __cplusplus
}
#endif
#endif
