/* remote_ends.h: the ends of operators and ranges that end on another thread than the one that began them, as TorchScript
 * functions do that wait. The stream of the beginning thread must have them: without, each of its chunks would carry the
 * operator on as open, and replay would nest what follows in it. Only the owner of a stream appends, so another thread
 * leaves the end here, and the owner appends it before its next event. The caller holds the tracing lock. */
#ifndef KPTI_PYTHON_TRACER_CHUNKS_REMOTE_ENDS_H
#define KPTI_PYTHON_TRACER_CHUNKS_REMOTE_ENDS_H

#include "python_tracer/state/stream_state.h"

/* Leaves the end with the kind and number WORD for the owner of STREAM. If there is no memory the end is not recorded. */
void kpti_remote_ends_leave_locked(kpti_stream *stream, uint32_t word);
/* Returns the ends that were left, *COUNT of them, which the caller frees. */
uint32_t *kpti_remote_ends_take_locked(kpti_stream *stream, uint32_t *count);

#endif
