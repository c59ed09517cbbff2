/* crash_flush.h: the last flush of streams before SIGSEGV, SIGBUS, SIGFPE or SIGABRT ends the process, so that
 * the call that crashed is in the file.
 *
 * The handler runs on the thread that crashed, uses only async-signal-safe functions, and flushes nothing
 * itself. It wakes the service thread of each stream, waits for the flushes until a deadline, restores the
 * previous handler (faulthandler's, or the default) and queues the signal again. So the process ends with the
 * same status, core and messages as without the handler. Handlers use the alternate signal stack if the thread
 * has one. The main thread gets one if it has none, since after a stack overflow a handler cannot run on any
 * other stack.
 *
 *   watch ──> unwatch
 *
 * A signal for which the program has its own handler is left alone. If another handler has replaced ours,
 * unwatch leaves that handler in place. In the child of a fork no service thread is watched, and the handler
 * only raises the signal again. */
#ifndef KPTI_HOSTS_STANDALONE_BACKGROUND_CRASH_FLUSH_H
#define KPTI_HOSTS_STANDALONE_BACKGROUND_CRASH_FLUSH_H

#include "hosts/standalone/background/service_thread.h"

#ifdef __cplusplus
extern "C" {
#endif

/* From now on the handler runs SERVICE's at_interval. The service thread runs, and neither moves nor ends before
 * unwatch. CHAINED has the bit 1 << number of each signal whose present handler may run after ours; without the
 * bit our handler replaces the default only. Any thread may call it, but not a signal handler. At most 8
 * services are flushed; later ones are ignored. */
void kpti_crash_watch(kpti_service_thread *service, uint32_t chained);

/* The handler no longer uses SERVICE. Removing the last service restores the handlers. It is no error if SERVICE
 * is not watched. */
void kpti_crash_unwatch(kpti_service_thread *service);

#ifdef __cplusplus
}
#endif
#endif
