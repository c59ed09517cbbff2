/* tracing_control.h: how tracers start and stop to record, and what the end of the interpreter and a fork do to those
 * that record. */
#ifndef KPTI_PYTHON_TRACER_TRACING_CONTROL_H
#define KPTI_PYTHON_TRACER_TRACING_CONTROL_H

#include "python_tracer/state/tracer_state.h"

/* Begins a run of TRACER. The GIL, or a thread state, is held. */
kpt_status kpti_tracing_start(kpti_tracer *tracer, kpti_error *error);
/* Ends it: when this returns no other thread is inside the tracer's streams, or in a call to its host. No
 * GIL is needed. */
void kpti_tracing_stop(kpti_tracer *tracer);
/* The interpreter is about to end: no tracer records any more, and the hooks are gone. The GIL is held. */
void kpti_tracing_exit(void);
/* It has ended: the same for what was begun since. */
void kpti_tracing_end(void);
/* In the child of a fork: it has one thread, and no tracer that records; the plugin reports the fork to each
 * tracer. */
void kpti_tracing_forked_locked(void);
/* In the child of a fork: TRACER does not record any more. */
void kpti_tracing_forget_locked(kpti_tracer *tracer);

#endif
