/* host_callbacks.h: the calls to hosts that are in progress: thread_attach and on_watched_call. They run outside
 * of the thread's own callback (kpti_callback_suspend), as the host may take its time and run Python. So that
 * stop can wait for them all the same, each is in a list while it lasts.
 *
 * The tracing lock guards the list. A thread that ends inside of a call takes its calls along. */
#ifndef KPTI_PYTHON_TRACER_STATE_HOST_CALLBACKS_H
#define KPTI_PYTHON_TRACER_STATE_HOST_CALLBACKS_H

#include "python_tracer/state/thread_state.h"

struct kpti_tracer;
typedef struct kpti_host_call kpti_host_call;

/* The calling thread, which is a traced one, is about to call the host of TRACER, which records. Returns
 * NULL when there is no memory: then the host must not be called. */
kpti_host_call *kpti_host_call_begin_locked(const struct kpti_tracer *tracer);
/* The host has returned. No lock is held. */
void kpti_host_call_end(kpti_host_call *call);

/* Waits until no other thread is in a call to the host of TRACER, which does not record any more. No lock is
 * held. Where the GIL is held it is released meanwhile, since the host may wait for it. Once Python is ending
 * its threads may never return, so nobody waits for them. */
void kpti_host_calls_wait(const struct kpti_tracer *tracer);

/* THREAD has ended. */
void kpti_host_calls_drop_locked(const kpti_thread *thread);
/* In the child of a fork: of all threads, the calling one is left. */
void kpti_host_calls_forked_locked(void);

#endif
