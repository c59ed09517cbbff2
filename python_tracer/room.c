#include "room.h"

void kpti_room_free_locked(kpti_tracer *tracer, kpti_chunk *chunk)
{
    tracer->bytes_held -= kpti_chunk_bytes(chunk->capacity);
    kpti_store_give_locked(tracer->env, chunk);
}

/* Lets go of the chunk that LINK, of the stream, leads to; it is not the one that is written. */
static void drop_locked(kpti_stream *stream, kpti_chunk **link)
{
    kpti_chunk *chunk = *link;
    *link = chunk->next;
    if (stream->given == chunk) { /* the sink has it */
        stream->given = NULL;
        stream->tracer->given.events += chunk->count;
    } else {
        if (*link) (*link)->dropped_before += chunk->count + chunk->dropped_before;
        atomic_fetch_add_explicit(&stream->dropped_total, chunk->count, memory_order_relaxed);
    }
    kpti_room_free_locked(stream->tracer, chunk);
}

int kpti_room_is_ring(const kpti_tracer *tracer)
{
    return tracer->args.on_full == KPT_FULL_RING || tracer->ring_ticks || tracer->args.ring_bytes;
}

int kpti_room_tells_opens(const kpti_tracer *tracer)
{
    return kpti_room_is_ring(tracer) || tracer->chunk_sink.sealed;
}

/* The smallest of the tracer's bounds, in bytes; 0: there is none. */
static uint64_t most_bytes(const kpti_tracer *tracer)
{
    uint64_t most = tracer->args.max_bytes;
    if (tracer->args.ring_bytes && (!most || tracer->args.ring_bytes < most))
        most = tracer->args.ring_bytes;
    if (tracer->args.max_events && (!most || tracer->args.max_events * sizeof(kpti_event) < most))
        most = tracer->args.max_events * sizeof(kpti_event);
    return most;
}

int kpti_room_make_locked(kpti_stream *stream, size_t bytes, uint64_t now)
{
    kpti_tracer *tracer = stream->tracer;
    /* What is being read stays, and as much may come meanwhile, which goes like the rest. */
    kpti_chunk **link = tracer->readers ? &stream->later : &stream->first;
    const uint64_t most = most_bytes(tracer);
    const uint64_t read = tracer->readers && kpti_room_is_ring(tracer) ? most : 0;
    if (stream->handing && link == &stream->first && *link) link = &(*link)->next;
    while (tracer->ring_ticks && *link && (*link)->next &&
           now - (*link)->next->base_ticks > tracer->ring_ticks)
        drop_locked(stream, link);
    if (!most || tracer->bytes_held + bytes <= most) return 1;
    if (!kpti_room_is_ring(tracer)) return 0;
    while (*link && *link != stream->last && tracer->bytes_held + bytes - most > read)
        drop_locked(stream, link);
    return 1; /* each thread may hold two chunks, however small the ring */
}
