/* chunk_sink.h: pushes sealed chunks to the tracer's chunk sink, which takes them over, while the tracer
 * runs and when it stops. If the sink takes whole chunks (KPT_CHUNKS_WHOLE), tables are sent before and
 * between them.
 *
 * No lock is held while a sink runs, since a sink may take long. One thread at a time pushes a stream's
 * chunks: its owner, or the thread that flushes. */
#ifndef KPTI_PYTHON_TRACER_CHUNKS_CHUNK_SINK_H
#define KPTI_PYTHON_TRACER_CHUNKS_CHUNK_SINK_H

#include "python_tracer/state/stream_state.h"

/* Pushes the stream's sealed chunks to the tracer's sink, if it has one. TICKS is the current time. */
void kpti_sink_push(kpti_stream *stream, uint64_t ticks);

#endif
