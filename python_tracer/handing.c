#include "handing.h"

#include "room.h"
#include "session.h"

/* The stream's number, as a kpt_thread's: how many are older. New ones come in front. */
static uint32_t index_of(const kpti_stream *stream)
{
    uint32_t index = 0;
    while ((stream = stream->sibling))
        index++;
    return index;
}

/* Lets go of a chunk that the sink has taken while it was being read; 0 if it still is. */
static int forget_given(kpti_stream *stream)
{
    int gone;
    kpti_session_lock();
    gone = !stream->tracer->readers;
    if (gone && stream->given) {
        stream->first = stream->given->next;
        if (stream->last == stream->given) stream->last = NULL;
        kpti_room_free_locked(stream->tracer, stream->given);
        stream->given = NULL;
    }
    kpti_session_unlock();
    return gone;
}

/* Offers the oldest chunk, which is sealed, to the host's sink; 1 if that took it. TICKS: now. */
static int offer(kpti_stream *stream, uint64_t ticks)
{
    kpti_tracer *tracer = stream->tracer;
    kpti_chunk *chunk = stream->first;
    kpt_chunk out;
    int taken;
    KPT_INIT(&out);
    out.thread = index_of(stream);
    out.sequence = chunk->sequence;
    out.os_tid = stream->os_tid;
    out.first_ticks = chunk->base_ticks;
    out.last_ticks = chunk->next ? chunk->next->base_ticks : ticks;
    out.dropped_before = chunk->dropped_before;
    out.data = chunk->events;
    out.size_bytes = chunk->count * sizeof(kpti_event);
    taken = tracer->chunk_sink.sealed(tracer->chunk_sink.chunk_ctx, &out) == KPT_OK;
    kpti_session_lock();
    if (taken)
        stream->given = chunk;
    else
        tracer->chunks_refused++;
    kpti_session_unlock();
    return taken;
}

void kpti_hand_to_sink(kpti_stream *stream, const kpti_chunk *last, uint64_t ticks)
{
    if (!stream->tracer->chunk_sink.sealed) return;
    while (forget_given(stream) && stream->first && stream->first != last && offer(stream, ticks))
        continue;
}
