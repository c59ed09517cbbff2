#include "room.h"

void kpti_room_free_locked(kpti_tracer *tracer, kpti_chunk *chunk)
{
    tracer->bytes_held -= kpti_chunk_bytes(chunk->capacity);
    kpti_store_give_locked(tracer->env, chunk);
}

/* Lets go of the oldest chunk; what a snapshot may be reading is only put aside. */
static void drop_first_locked(kpti_stream *stream)
{
    kpti_tracer *tracer = stream->tracer;
    kpti_chunk *chunk = stream->first;
    stream->first = chunk->next;
    if (stream->last == chunk) stream->last = NULL;
    if (stream->given == chunk) stream->given = NULL;
    if (stream->first) stream->first->dropped_before += chunk->count + chunk->dropped_before;
    atomic_fetch_add_explicit(&stream->dropped_total, chunk->count, memory_order_relaxed);
    if (tracer->readers) {
        chunk->next = tracer->limbo;
        tracer->limbo = chunk;
    } else {
        kpti_room_free_locked(tracer, chunk);
    }
}

int kpti_room_is_ring(const kpti_tracer *tracer)
{
    return tracer->args.on_full == KPT_FULL_RING || tracer->ring_ticks || tracer->args.ring_bytes;
}

int kpti_room_tells_opens(const kpti_tracer *tracer)
{
    return kpti_room_is_ring(tracer) || tracer->chunk_sink.sealed;
}

int kpti_room_make_locked(kpti_stream *stream, size_t bytes, uint64_t now)
{
    kpti_tracer *tracer = stream->tracer;
    uint64_t most = tracer->args.max_bytes;
    if (tracer->args.ring_bytes && (!most || tracer->args.ring_bytes < most))
        most = tracer->args.ring_bytes;
    if (tracer->args.max_events && (!most || tracer->args.max_events * sizeof(kpti_event) < most))
        most = tracer->args.max_events * sizeof(kpti_event);
    if (tracer->readers)
        return kpti_room_is_ring(tracer) || !most || tracer->bytes_held + bytes <= most;
    while (tracer->ring_ticks && stream->first && stream->first->next &&
           now - stream->first->next->base_ticks > tracer->ring_ticks)
        drop_first_locked(stream);
    if (!most || tracer->bytes_held + bytes <= most) return 1;
    if (!kpti_room_is_ring(tracer)) return 0;
    while (stream->first && stream->first != stream->last && tracer->bytes_held + bytes > most)
        drop_first_locked(stream);
    return 1; /* each thread may hold two chunks, however small the ring */
}
