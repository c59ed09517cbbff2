/* chunk_sink.h: pushes sealed chunks to the tracer's chunk sink, which takes them over, while the tracer
 * runs and when it stops. If the sink takes whole chunks (KPT_CHUNKS_WHOLE), tables are sent before and
 * between them.
 *
 * No lock is held while a sink runs, since a sink may take long. One thread at a time pushes a stream's
 * chunks: its owner, or the thread that flushes. While one pushes, the other leaves its chunks to that thread's
 * push, or to its own next push. */
#ifndef KPTI_PYTHON_TRACER_CHUNKS_CHUNK_SINK_H
#define KPTI_PYTHON_TRACER_CHUNKS_CHUNK_SINK_H

#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/tracer_state.h"

/* Pushes the stream's sealed chunks to the tracer's sink, if it has one. TICKS is the current time. The caller is the
 * stream's owner, or the stream has ended: no chunk is sealed meanwhile. */
void kpti_sink_push(kpti_stream *stream, uint64_t ticks);

/* The same on another thread than the owner's, which may seal chunks faster than the sink takes them: pushes only
 * chunks that were begun before the call. */
void kpti_sink_flush(kpti_stream *stream, uint64_t ticks);

/* Sends the sink descriptions of the threads, from the stream FIRST of TRACER on, that it would get one by one with their
 * first chunks, in few tables. Only a control call may do so, since it walks the streams without the lock. */
void kpti_sink_describe(kpti_tracer *tracer, kpti_stream *first);

#endif
