/* quiesce.h: waits for callbacks that run on other threads. */
#ifndef KPTI_PYTHON_TRACER_STATE_QUIESCE_H
#define KPTI_PYTHON_TRACER_STATE_QUIESCE_H

#include "python_tracer/state/tracer_state.h"

/* Waits until no thread is in the middle of an append to TRACER's streams. No lock is held. */
void kpti_wait_for_callbacks(kpti_tracer *tracer);

#endif
