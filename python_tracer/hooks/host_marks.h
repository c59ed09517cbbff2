/* host_marks.h: what the host marks in its threads' streams: points, and spans of its own. */
#ifndef KPTI_PYTHON_TRACER_HOOKS_HOST_MARKS_H
#define KPTI_PYTHON_TRACER_HOOKS_HOST_MARKS_H

#include "python_tracer/state/tracer_state.h"

/* Marks where the calling thread is in TRACER's recording, if it has one there. No GIL is needed. */
void kpti_mark(kpti_tracer *tracer, uint32_t what, uint64_t number);

#endif
