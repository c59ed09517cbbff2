/* ended_streams.h: the streams of threads that have ended (event_stream.h), and of greenlets. A tracer frees such a
 * stream once its chunks are gone: dropped from a ring, or taken by the sink. So a recording takes memory for the
 * threads that run and for the chunks that it holds, not for each thread that ever ran.
 *
 * Invariants:
 *   tracer->left has the streams that may have chunks, in the order of ending; tracer->done those without, which only
 *   a tracer with a sink keeps, until the sink has the final description of their threads;
 *   a stream that a suspended callback may still use is freed with its tracer.
 *
 * "_locked": the caller holds the tracing lock. */
#ifndef KPTI_PYTHON_TRACER_CHUNKS_ENDED_STREAMS_H
#define KPTI_PYTHON_TRACER_CHUNKS_ENDED_STREAMS_H

#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/tracer_state.h"

/* Records that the stream's thread has ended. IS_IN_USE: a suspended callback may return to the stream. */
void kpti_ended_add_locked(kpti_stream *stream, int is_in_use);

/* The ring has dropped the last chunk of the first stream of tracer->left. Frees the stream, or moves it to
 * tracer->done. No snapshot may read. */
void kpti_ended_is_empty_locked(kpti_tracer *tracer);

/* Moves the streams of tracer->left that have no chunk to tracer->done. */
void kpti_ended_collect_locked(kpti_tracer *tracer);
/* Takes at most MAX streams from tracer->done, linked by left_next. Returns NULL if there are none, or if a snapshot
 * reads. The caller frees them, or puts them back. Only a control call may do so, since it walks the tracer's streams
 * without the lock. */
kpti_stream *kpti_ended_take_locked(kpti_tracer *tracer, uint32_t max);
void kpti_ended_put_back_locked(kpti_tracer *tracer, kpti_stream *streams);
void kpti_ended_free_locked(kpti_tracer *tracer, kpti_stream *streams);

#endif
