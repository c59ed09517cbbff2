#include "python_tracer/chunks/chunk_sink.h"

#include "core/base/assert.h"
#include "core/base/platform.h"
#include "python_tracer/chunks/chunk_budget.h"
#include "python_tracer/chunks/sink_records.h"
#include "python_tracer/state/tracer_state.h"
#include "python_tracer/state/tracing_lock.h"

/* The chunks that a push must not reach: those of RUN from SEQUENCE on. */
typedef struct push_end {
    uint32_t run;
    uint32_t sequence;
} push_end;

static const push_end no_end = {UINT32_MAX, UINT32_MAX};

/* Sends the tables that the sink needs before the stream's chunk SEQUENCE. A table that the sink refused is
 * sent again later. A table is also sent twice if two threads are in this function at once. */
static void send_news(kpti_stream *stream, uint32_t sequence)
{
    const uint64_t now = kpti_ticks();
    kpti_tracer *tracer = stream->tracer;
    const kpt_chunk_sink *sink = &tracer->chunk_sink;
    kpti_metadata table = {.env = tracer->env};
    kpti_clock_point point;
    uint32_t names;
    uint32_t runs;
    int pointed;
    kpti_tracing_lock();
    names = tracer->given.names;
    runs = tracer->run_count;
    pointed = kpti_clock_is_due(now, tracer->given.point_ticks, tracer->given.point_apart);
    if (pointed) tracer->given.point_ticks = now;
    for (uint32_t i = tracer->given.runs; i < runs; i++)
        kpti_metadata_add_run(&table, i, &tracer->runs[i]);
    if (!tracer->given.runs) kpti_metadata_add_clock(&table, &tracer->clock_start);
    if (!sequence && !stream->described) kpti_sink_add_thread(&table, stream, stream->index);
    kpti_tracing_unlock();
    if (pointed) {
        kpti_tracer_calibrate(tracer, &point);
        kpti_metadata_add_clock(&table, &point);
    }
    if (kpti_sink_send_table(sink, &table) != KPT_OK) runs = 0;
    kpti_metadata_free(&table);
    (void)kpti_sink_send_names(tracer, sink, &names);
    kpti_tracing_lock();
    if (runs > tracer->given.runs) tracer->given.runs = runs;
    if (names > tracer->given.names) tracer->given.names = names;
    kpti_tracing_unlock();
}

/* Frees the chunk that the sink has taken, if any. Returns 0 if a snapshot reads the chunks; nothing is
 * freed then. */
static int forget_given_locked(kpti_stream *stream)
{
    kpti_assert(kpti_tracing_lock_is_mine() && kpti_stream_is_valid_locked(stream));
    if (stream->tracer->readers) return 0;
    if (stream->given) {
        stream->first = stream->given->next;
        stream->tracer->given.events += kpti_chunk_own_events(stream->given);
        if (stream->last == stream->given) stream->last = NULL;
        kpti_budget_free_locked(stream->tracer, stream->given);
        stream->given = NULL;
    }
    return 1;
}

static int is_before(const kpti_chunk *chunk, push_end end)
{
    return chunk->run != end.run || chunk->sequence < end.sequence;
}

/* Returns the oldest chunk if it is sealed, before END, and not taken by the sink, else NULL. */
static kpti_chunk *next_sealed_locked(kpti_stream *stream, push_end end, uint64_t ticks,
                                      uint64_t *last_ticks)
{
    kpti_chunk *chunk;
    if (!forget_given_locked(stream)) return NULL;
    chunk = stream->first;
    if (!chunk || (chunk == stream->last && !stream->sealed) || !is_before(chunk, end)) return NULL;
    *last_ticks = chunk->next ? chunk->next->base_ticks : ticks;
    return chunk;
}

/* Offers the oldest sealed chunk to the sink, if it is before END. Returns 1 if there was one and the sink took it. */
static int offer(kpti_stream *stream, push_end end, uint64_t ticks)
{
    kpti_tracer *tracer = stream->tracer;
    kpti_chunk *chunk;
    uint64_t last_ticks;
    int taken;
    kpti_tracing_lock();
    chunk = next_sealed_locked(stream, end, ticks, &last_ticks);
    kpti_tracing_unlock();
    if (!chunk) return 0;
    if (tracer->chunk_sink.flags & KPT_CHUNKS_WHOLE) send_news(stream, chunk->sequence);
    taken = kpti_sink_send_events(&tracer->chunk_sink, stream, stream->index, chunk, last_ticks) ==
            KPT_OK;
    kpti_tracing_lock();
    kpti_assert(stream->sink_state && !stream->given && stream->first == chunk);
    if (taken)
        stream->given = chunk;
    else
        tracer->chunks_refused++;
    kpti_tracing_unlock();
    return taken;
}

/* Makes the caller the thread that pushes the stream's chunks. Returns 0 if another thread pushes them; that thread then
 * retries. *END receives the end of the chunks that were begun so far. */
static int begin_push(kpti_stream *stream, push_end *end)
{
    int mine;
    kpti_tracing_lock();
    mine = stream->sink_state == KPTI_SINK_IDLE;
    stream->sink_state = mine ? KPTI_SINK_BUSY : KPTI_SINK_BUSY_RETRY;
    *end = (push_end){stream->run, stream->sequence};
    kpti_tracing_unlock();
    return mine;
}

/* Returns 1 if MAY_RETRY and another thread has left chunks to this push. */
static int end_push(kpti_stream *stream, int may_retry)
{
    int again;
    kpti_tracing_lock();
    kpti_assert(stream->sink_state != KPTI_SINK_IDLE); /* this thread pushes */
    again = may_retry && stream->sink_state == KPTI_SINK_BUSY_RETRY;
    if (!again) (void)forget_given_locked(stream);
    stream->sink_state = again ? KPTI_SINK_BUSY : KPTI_SINK_IDLE;
    kpti_tracing_unlock();
    return again;
}

void kpti_sink_push(kpti_stream *stream, uint64_t ticks)
{
    push_end end;
    int mine;
    kpti_assert(!kpti_tracing_lock_is_mine()); /* a sink may take long */
    if (!stream->tracer->chunk_sink.sealed) return;
    for (mine = begin_push(stream, &end); mine; ticks = kpti_tracer_ticks(stream->tracer)) {
        while (offer(stream, no_end, ticks))
            continue;
        mine = end_push(stream, 1);
    }
}

void kpti_sink_flush(kpti_stream *stream, uint64_t ticks)
{
    push_end end;
    kpti_assert(!kpti_tracing_lock_is_mine());
    if (!stream->tracer->chunk_sink.sealed || !begin_push(stream, &end)) return;
    while (offer(stream, end, ticks))
        continue;
    (void)end_push(stream, 0);
}

/* Describes at most AT_ONCE of the threads from FIRST on whose first chunk of the run has not been pushed, in one table.
 * Returns where to go on. What the sink refuses is sent with the chunks. */
static kpti_stream *describe_some(kpti_tracer *tracer, kpti_stream *first)
{
    enum { AT_ONCE = 1024 };
    kpti_metadata table = {.env = tracer->env};
    kpti_stream *end = first;
    kpt_status status;
    kpti_tracing_lock();
    for (uint32_t count = 0; end && count < AT_ONCE; end = end->sibling) {
        if (end->described || !end->first || end->first->sequence) continue;
        kpti_sink_add_thread(&table, end, end->index);
        end->described =
            end->thread_flags & KPT_THREAD_ENDED ? KPTI_DESCRIBED_FINAL : KPTI_DESCRIBED;
        count++;
    }
    kpti_tracing_unlock();
    status = kpti_sink_send_table(&tracer->chunk_sink, &table);
    kpti_metadata_free(&table);
    if (status == KPT_OK) return end;
    kpti_tracing_lock();
    for (kpti_stream *s = first; s != end; s = s->sibling)
        s->described = KPTI_DESCRIBED_NOT;
    kpti_tracing_unlock();
    return end;
}

void kpti_sink_describe(kpti_tracer *tracer, kpti_stream *first)
{
    if (!(tracer->chunk_sink.flags & KPT_CHUNKS_WHOLE)) return;
    while (first)
        first = describe_some(tracer, first);
}
