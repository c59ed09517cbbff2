/* quiesce.h: waits for callbacks on other threads. */
#ifndef KPTI_PYTHON_TRACER_STATE_QUIESCE_H
#define KPTI_PYTHON_TRACER_STATE_QUIESCE_H

#include "python_tracer/state/tracer_state.h"

/* Waits until every other thread has been outside an append to TRACER's streams. The caller holds no lock. */
void kpti_wait_for_callbacks(kpti_tracer *tracer);

#endif
