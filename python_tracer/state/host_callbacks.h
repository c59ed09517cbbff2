/* host_callbacks.h: the list of calls to hosts (thread_attach and on_watched_call) that are in progress.
 * These calls run while the thread's callback is suspended (kpti_callback_suspend), since the host may take
 * long and may run Python. Each call is in the list while it runs, so that stop can wait for it.
 *
 * The tracing lock guards the list. If a thread ends inside such a call, its calls are removed. */
#ifndef KPTI_PYTHON_TRACER_STATE_HOST_CALLBACKS_H
#define KPTI_PYTHON_TRACER_STATE_HOST_CALLBACKS_H

#include "python_tracer/state/thread_state.h"

struct kpti_tracer;
typedef struct kpti_host_call kpti_host_call;

/* Adds a call by the calling thread, which is traced, to the host of TRACER, which records. Returns NULL if
 * there is no memory; the caller must not call the host then. */
kpti_host_call *kpti_host_call_begin_locked(const struct kpti_tracer *tracer);
/* Removes the call after the host has returned. The caller holds no lock. */
void kpti_host_call_end(kpti_host_call *call);

/* Waits until no other thread is in a call to the host of TRACER, which no longer records. The caller holds
 * no lock. If the caller holds the GIL, the GIL is released during the wait, since the host may wait for
 * it. Once Python is finalizing, its threads may never return, so the function does not wait for them. */
void kpti_host_calls_wait(const struct kpti_tracer *tracer);

/* Removes the calls of THREAD, which has ended. */
void kpti_host_calls_drop_locked(const kpti_thread *thread);
/* Runs in the child of a fork: removes the calls of all threads except the calling one. */
void kpti_host_calls_forked_locked(void);

#endif
