/* chunk_sink.h: sealed chunks on their way to the sink that a tracer was made with, which takes them away: while it
 * runs, and when it stops. Where the sink wants whole chunks, tables go before and between them.
 *
 * No lock is held while a sink runs: it may take its time. One thread at a time pushes a stream's chunks:
 * its owner, or the thread that flushes. */
#ifndef KPTI_PYTHON_TRACER_CHUNKS_CHUNK_SINK_H
#define KPTI_PYTHON_TRACER_CHUNKS_CHUNK_SINK_H

#include "python_tracer/state/stream_state.h"

/* Pushes the stream's sealed chunks to the tracer's sink, where there is one. TICKS: now. */
void kpti_sink_push(kpti_stream *stream, uint64_t ticks);

#endif
