/* tracer_stats.h: what a tracer has recorded and lost so far, as kpt_stats reports it. */
#ifndef KPTI_PYTHON_TRACER_TRACER_STATS_H
#define KPTI_PYTHON_TRACER_TRACER_STATS_H

#include "python_tracer/state/tracer_state.h"

/* Fills OUT, which begins as zeroes. Any thread; takes the tracing lock. */
void kpti_tracer_stats(const kpti_tracer *tracer, kpt_stats *out);

#endif
