#include "python_tracer/chunks/chunk_budget.h"

#include "core/base/tick_counter.h"
#include "python_tracer/chunks/chunk_pool.h"

void kpti_budget_free_locked(kpti_tracer *tracer, kpti_chunk *chunk)
{
    tracer->bytes_held -= kpti_chunk_bytes(chunk->capacity);
    kpti_chunk_pool_put_locked(tracer->env, chunk);
}

/* Lets go of the chunk that LINK, of the stream, leads to; it is not the one that is written. */
static void drop_locked(kpti_stream *stream, kpti_chunk **link)
{
    kpti_chunk *chunk = *link;
    const uint32_t own = kpti_chunk_own_events(chunk);
    *link = chunk->next;
    if (stream->given == chunk) { /* the sink has it */
        stream->given = NULL;
        stream->tracer->given.events += own;
    } else {
        if (*link) (*link)->dropped_before += own + chunk->dropped_before;
        atomic_fetch_add_explicit(&stream->dropped_total, own, memory_order_relaxed);
    }
    kpti_budget_free_locked(stream->tracer, chunk);
}

int kpti_budget_is_ring(const kpti_tracer *tracer)
{
    return tracer->args.on_full == KPT_FULL_RING || tracer->ring_ticks || tracer->args.ring_bytes;
}

int kpti_budget_needs_open_stack(const kpti_tracer *tracer)
{
    return kpti_budget_is_ring(tracer) || tracer->chunk_sink.sealed;
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

void kpti_budget_thread_ended_locked(kpti_stream *stream)
{
    kpti_tracer *tracer = stream->tracer;
    kpti_stream **end = tracer->left ? tracer->left_end : &tracer->left;
    stream->left_ticks = kpti_ticks();
    *end = stream;
    tracer->left_end = &stream->left_next;
}

/* Whether a thread that has ended left a chunk that may go, whose last event was before TICKS. */
static int has_left_locked(const kpti_tracer *tracer, uint64_t ticks)
{
    const kpti_stream *left = tracer->left;
    const kpti_chunk *second = left && left->first ? left->first->next : NULL;
    return left && !tracer->readers && !left->sink_state &&
           (second ? second->begun : left->left_ticks) < ticks;
}

/* The thread that ended first loses the oldest that it left. */
static void drop_left_locked(kpti_tracer *tracer)
{
    kpti_stream *stream = tracer->left;
    if (stream->first) drop_locked(stream, &stream->first);
    if (stream->first) return;
    stream->last = NULL;
    tracer->left = stream->left_next;
}

/* Lets go of what is too old at NOW for a ring by time. */
static void drop_old_locked(kpti_stream *stream, kpti_chunk **link, uint64_t now)
{
    kpti_tracer *tracer = stream->tracer;
    while (*link && (*link)->next && now - (*link)->next->begun > tracer->ring_ticks)
        drop_locked(stream, link);
    while (now > tracer->ring_ticks && has_left_locked(tracer, now - tracer->ring_ticks))
        drop_left_locked(tracer);
}

/* Lets go of what is oldest, of the stream's own and of what ended threads left, until no more than MOST bytes
 * are held, or there is no more. */
static void drop_until_locked(kpti_stream *stream, kpti_chunk **link, uint64_t most)
{
    kpti_tracer *tracer = stream->tracer;
    while (tracer->bytes_held > most) {
        const kpti_chunk *second = *link ? (*link)->next : NULL;
        if (has_left_locked(tracer, second ? second->begun : UINT64_MAX))
            drop_left_locked(tracer);
        else if (second)
            drop_locked(stream, link);
        else
            return; /* each thread may hold two chunks, however small the ring */
    }
}

int kpti_budget_reserve_locked(kpti_stream *stream, size_t bytes, uint64_t now)
{
    kpti_tracer *tracer = stream->tracer;
    /* What is being read stays, and as much may come meanwhile, which goes like the rest. */
    kpti_chunk **link = tracer->readers ? &stream->later : &stream->first;
    const uint64_t most = most_bytes(tracer);
    const uint64_t read = tracer->readers ? most : 0;
    if (stream->sink_state && link == &stream->first && *link) link = &(*link)->next;
    if (tracer->ring_ticks) drop_old_locked(stream, link, now);
    if (!most || tracer->bytes_held + bytes <= most) return 1;
    if (!kpti_budget_is_ring(tracer)) return 0;
    drop_until_locked(stream, link, most + read > bytes ? most + read - bytes : 0);
    return 1;
}
