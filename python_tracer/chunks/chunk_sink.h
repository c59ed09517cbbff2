/* chunk_sink.h: chunks on their way to a host's sink: sealed ones to the sink that the tracer was made with,
 * while it runs and when it stops, which takes them away; or all that is held to another. Where the sink
 * wants whole chunks, tables go before and between them.
 *
 * No lock is held while a sink runs: it may take its time. One thread at a time hands a stream's chunks:
 * its owner, or who flushes. */
#ifndef KPTI_PYTHON_TRACER_CHUNKS_CHUNK_SINK_H
#define KPTI_PYTHON_TRACER_CHUNKS_CHUNK_SINK_H

#include "python_tracer/tracer.h"

/* Hands the stream's sealed chunks to the tracer's sink, where there is one. TICKS: now. */
void kpti_hand_to_sink(kpti_stream *stream, uint64_t ticks);

/* Seals and hands over what every thread has recorded so far: when this returns, the sink has it. No lock
 * is held. */
void kpti_hand_all(kpti_tracer *tracer);

/* Tells the tracer's sink what is known only when recording has ended. */
void kpti_hand_end(kpti_tracer *tracer);

/* Hands all that is held to SINK, and keeps it. */
kpt_status kpti_hand_copy(kpti_tracer *tracer, const kpt_chunk_sink *sink, kpti_error *error);

#endif
