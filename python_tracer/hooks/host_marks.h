/* host_marks.h: records the host's marks in its threads' streams: points, and spans of the host. */
#ifndef KPTI_PYTHON_TRACER_HOOKS_HOST_MARKS_H
#define KPTI_PYTHON_TRACER_HOOKS_HOST_MARKS_H

#include "python_tracer/state/thread_state.h"
#include "python_tracer/state/tracer_state.h"

/* Returns the stream in which THREAD records for TRACER, or NULL if there is none or its run is over. */
kpti_stream *kpti_host_stream(const kpti_thread *thread, const kpti_tracer *tracer);

/* Records a mark at the calling thread's position in TRACER's recording, if the thread has a stream there.
 * Needs no GIL. */
void kpti_mark(kpti_tracer *tracer, uint32_t what, uint64_t number);

#endif
