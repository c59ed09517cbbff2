/* tracing_control.h: starts and stops the recording of tracers, and stops active tracers at the end of the
 * interpreter and in the child of a fork. */
#ifndef KPTI_PYTHON_TRACER_TRACING_CONTROL_H
#define KPTI_PYTHON_TRACER_TRACING_CONTROL_H

#include "python_tracer/state/tracer_state.h"

/* Begins a run of TRACER. The caller holds the GIL or a thread state. */
kpt_status kpti_tracing_start(kpti_tracer *tracer, kpti_error *error);
/* Ends the run. When the function returns, no other thread is inside the tracer's streams or in a call to
 * its host. Needs no GIL. */
void kpti_tracing_stop(kpti_tracer *tracer);
/* Stops all tracers and removes the hooks, since the interpreter is about to end. The caller holds the GIL. */
void kpti_tracing_exit(void);
/* Stops the tracers that were started since then. The interpreter has ended. */
void kpti_tracing_end(void);
/* Runs in the child of a fork, which has one thread: stops all tracers. The plugin reports the fork to each
 * tracer. */
void kpti_tracing_forked_locked(void);
/* Stops TRACER without waiting for other threads: closes its streams and invalidates the caches. */
void kpti_tracing_forget_locked(kpti_tracer *tracer);

#endif
