/* tracer_stats.h: counts the events that a tracer has recorded and lost so far, for kpt_stats. */
#ifndef KPTI_PYTHON_TRACER_TRACER_STATS_H
#define KPTI_PYTHON_TRACER_TRACER_STATS_H

#include "python_tracer/state/tracer_state.h"

/* Fills OUT, which the caller has zeroed. Any thread. Acquires the tracing lock. */
void kpti_tracer_stats(const kpti_tracer *tracer, kpt_stats *out);

#endif
