/* stream_guard.h: where a stream meets its tracer's overhead guard (overhead_guard.h), if the tracer has one. */
#ifndef KPTI_PYTHON_TRACER_CHUNKS_STREAM_GUARD_H
#define KPTI_PYTHON_TRACER_CHUNKS_STREAM_GUARD_H

#include "python_tracer/state/stream_state.h"

/* The stream begins to record. */
void kpti_stream_guard_begin(kpti_stream *stream);
/* Lets the guard check the chunk that was just sealed. The caller holds the tracing lock. */
void kpti_stream_guard_locked(kpti_stream *stream);
/* Returns whether WORD is the enter of a function that the guard has just switched off. Its exit would be missing. */
int kpti_stream_is_switched_off(const kpti_stream *stream, uint32_t word);

#endif
