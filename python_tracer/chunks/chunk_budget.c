#include "python_tracer/chunks/chunk_budget.h"

#include "core/base/assert.h"
#include "python_tracer/chunks/chunk_pool.h"
#include "python_tracer/chunks/ended_streams.h"
#include "python_tracer/state/tracing_lock.h"

void kpti_budget_free_locked(kpti_tracer *tracer, kpti_chunk *chunk)
{
    kpti_assert(kpti_tracing_lock_is_mine());
    kpti_assert(tracer->bytes_held >= kpti_chunk_bytes(chunk->capacity));
    tracer->bytes_held -= kpti_chunk_bytes(chunk->capacity);
    kpti_chunk_pool_put_locked(tracer->env, chunk);
}

/* Drops the stream's chunk that LINK points to. It is not the chunk being written. */
static void drop_locked(kpti_stream *stream, kpti_chunk **link)
{
    kpti_chunk *chunk = *link;
    const uint32_t own = kpti_chunk_own_events(chunk);
    kpti_assert(kpti_chunk_is_valid(chunk) && (chunk != stream->last || stream->sealed));
    *link = chunk->next;
    if (stream->given == chunk) { /* the sink has received it */
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

/* Returns the smallest of the tracer's limits in bytes, or 0 if it has none. */
static uint64_t most_bytes(const kpti_tracer *tracer)
{
    uint64_t max = tracer->args.max_bytes;
    if (tracer->args.ring_bytes && (!max || tracer->args.ring_bytes < max))
        max = tracer->args.ring_bytes;
    if (tracer->args.max_events && (!max || tracer->args.max_events * sizeof(kpti_event) < max))
        max = tracer->args.max_events * sizeof(kpti_event);
    return max;
}

/* Whether the first ended thread on the list left a chunk that may be dropped and whose last event was
 * before TICKS. */
static int has_left_locked(const kpti_tracer *tracer, uint64_t ticks)
{
    const kpti_stream *left = tracer->left;
    const kpti_chunk *second = left && left->first ? left->first->next : NULL;
    return left && !tracer->readers && !left->sink_state &&
           (second ? second->begun : left->left_ticks) < ticks;
}

/* Drops the oldest chunk of the thread that ended first. */
static void drop_left_locked(kpti_tracer *tracer)
{
    kpti_stream *stream = tracer->left;
    if (stream->first) drop_locked(stream, &stream->first);
    if (!stream->first) kpti_ended_is_empty_locked(tracer);
}

/* Drops the chunks that are too old at NOW for a ring by time. */
static void drop_old_locked(kpti_stream *stream, kpti_chunk **link, uint64_t now)
{
    kpti_tracer *tracer = stream->tracer;
    while (*link && (*link)->next && now - (*link)->next->begun > tracer->ring_ticks)
        drop_locked(stream, link);
    while (now > tracer->ring_ticks && has_left_locked(tracer, now - tracer->ring_ticks))
        drop_left_locked(tracer);
}

/* Drops the oldest chunks, of this stream and of ended threads, until at most MAX bytes are held or no
 * chunk is left to drop. */
static void drop_until_locked(kpti_stream *stream, kpti_chunk **link, uint64_t max)
{
    kpti_tracer *tracer = stream->tracer;
    while (tracer->bytes_held > max) {
        const kpti_chunk *second = *link ? (*link)->next : NULL;
        if (has_left_locked(tracer, second ? second->begun : UINT64_MAX))
            drop_left_locked(tracer);
        else if (second)
            drop_locked(stream, link);
        else
            return; /* each thread may hold two chunks, however small the ring is */
    }
}

int kpti_budget_reserve_locked(kpti_stream *stream, size_t bytes, uint64_t now)
{
    kpti_tracer *tracer = stream->tracer;
    /* The chunks that a snapshot reads stay. Meanwhile the ring may grow by its size again; those new
     * chunks are dropped like others. */
    kpti_chunk **link = tracer->readers ? &stream->later : &stream->first;
    const uint64_t max = most_bytes(tracer);
    const uint64_t read = tracer->readers ? max : 0;
    kpti_assert(kpti_tracing_lock_is_mine());
    if (stream->sink_state && link == &stream->first && *link) link = &(*link)->next;
    if (tracer->ring_ticks) drop_old_locked(stream, link, now);
    if (!max || tracer->bytes_held + bytes <= max) return 1;
    if (!kpti_budget_is_ring(tracer)) return 0;
    drop_until_locked(stream, link, max + read > bytes ? max + read - bytes : 0);
    return 1;
}
