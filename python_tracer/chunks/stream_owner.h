/* stream_owner.h: makes and frees streams (event_stream.h), and sets the thread that may append to one, its owner. A
 * stream without an owner is of a thread that has had no event yet, or has ended. The caller holds the tracing lock. */
#ifndef KPTI_PYTHON_TRACER_CHUNKS_STREAM_OWNER_H
#define KPTI_PYTHON_TRACER_CHUNKS_STREAM_OWNER_H

#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/thread_state.h"
#include "python_tracer/state/tracer_state.h"

/* Makes a stream without an owner, which does not record yet. Returns NULL if there is no memory. */
kpti_stream *kpti_stream_make_locked(kpti_tracer *tracer, uint64_t os_tid, const char *name);
/* Makes a stream of TRACER for the calling thread, which does not record yet. Returns NULL if there is no
 * memory. */
kpti_stream *kpti_stream_new_locked(kpti_tracer *tracer, kpti_thread *thread);
/* Makes THREAD the owner of a stream without an owner. */
void kpti_stream_adopt_locked(kpti_stream *stream, kpti_thread *thread);
/* The opposite: removes the owner, which has ended or can't return to the stream. */
void kpti_stream_abandon_locked(kpti_stream *stream);
/* Frees the stream, which has no chunks, and is on no list any more. */
void kpti_stream_free(kpti_stream *stream);

#endif
