#include "python_tracer/chunks/chunk_sink.h"

#include "core/base/platform.h"
#include "core/callstacks/function_table.h"
#include "core/recording/serialized/metadata_sections.h"
#include "python_tracer/chunks/chunk_budget.h"
#include "python_tracer/chunks/chunk_freeze.h"
#include "python_tracer/threads/tracing_state.h"

static kpt_status send(const kpt_chunk_sink *sink, const kpt_chunk *chunk)
{
    return sink->sealed(sink->chunk_ctx, chunk);
}

static kpt_status send_table(const kpt_chunk_sink *sink, const kpti_table *table)
{
    kpt_chunk chunk;
    if (table->failed) return KPT_E_MEMORY;
    if (!table->size) return KPT_OK;
    kpti_table_chunk(table, &chunk);
    return send(sink, &chunk);
}

static kpt_status send_events(const kpt_chunk_sink *sink, const kpti_stream *stream,
                              const kpti_chunk *chunk, uint64_t last_ticks)
{
    kpt_chunk out;
    KPT_INIT(&out);
    out.format = KPTI_CHUNK_FORMAT;
    out.thread = stream->index;
    out.sequence = chunk->sequence;
    out.os_tid = stream->os_tid;
    out.first_ticks = chunk->base_ticks;
    out.last_ticks = last_ticks;
    out.dropped_before = chunk->dropped_before;
    out.data = chunk->events;
    out.size_bytes = chunk->count * sizeof(kpti_event);
    out.run = chunk->run;
    return send(sink, &out);
}

static void add_thread(kpti_table *table, const kpti_stream *stream)
{
    const kpti_track track = {NULL,
                              stream->os_tid,
                              stream->host_value,
                              kpt_str_of(stream->name),
                              stream->thread_flags,
                              stream->spans};
    kpti_table_add_thread(table, stream->index, &track);
}

/* --- to the tracer's own sink ----------------------------------------------------------------- */

/* Names from *FIRST on, a table for each megabyte; *FIRST is then up to where the sink has them. */
static kpt_status send_names(const kpti_tracer *tracer, const kpt_chunk_sink *sink, uint32_t *first)
{
    const uint32_t end = kpti_function_count();
    kpt_status status = KPT_OK;
    while (*first < end && status == KPT_OK) {
        kpti_table table = {.env = tracer->env};
        uint32_t next = kpti_table_add_names(&table, kpti_function_describe, NULL, *first, end);
        status = send_table(sink, &table);
        kpti_table_free(&table);
        if (status == KPT_OK) *first = next;
    }
    return status;
}

/* What the sink must know before the stream's chunk SEQUENCE. What it did not take it gets again; so it
 * does, too, if two threads are here at once. */
static void send_news(kpti_stream *stream, uint32_t sequence)
{
    const uint64_t now = kpti_ticks();
    kpti_tracer *tracer = stream->tracer;
    const kpt_chunk_sink *sink = &tracer->chunk_sink;
    kpti_table table = {.env = tracer->env};
    kpti_clock_point point;
    uint32_t names;
    uint32_t runs;
    int pointed;
    kpti_session_lock();
    names = tracer->given.names;
    runs = tracer->run_count;
    pointed = kpti_clock_is_due(now, tracer->given.point_ticks, tracer->given.point_apart);
    if (pointed) tracer->given.point_ticks = now;
    for (uint32_t i = tracer->given.runs; i < runs; i++)
        kpti_table_add_run(&table, i, &tracer->runs[i]);
    if (!tracer->given.runs) kpti_table_add_clock(&table, &tracer->clock_start);
    if (!sequence) add_thread(&table, stream);
    kpti_session_unlock();
    if (pointed) {
        kpti_tracer_calibrate(tracer, &point);
        kpti_table_add_clock(&table, &point);
    }
    if (send_table(sink, &table) != KPT_OK) runs = 0;
    kpti_table_free(&table);
    (void)send_names(tracer, sink, &names);
    kpti_session_lock();
    if (runs > tracer->given.runs) tracer->given.runs = runs;
    if (names > tracer->given.names) tracer->given.names = names;
    kpti_session_unlock();
}

/* Lets go of the chunk that the sink has taken, unless it is being read; 0 if it is. */
static int forget_given_locked(kpti_stream *stream)
{
    if (stream->tracer->readers) return 0;
    if (stream->given) {
        stream->first = stream->given->next;
        stream->tracer->given.events += kpti_chunk_own_events(stream->given);
        if (stream->last == stream->given) stream->last = NULL;
        kpti_room_free_locked(stream->tracer, stream->given);
        stream->given = NULL;
    }
    return 1;
}

/* The oldest chunk, if it is sealed and not taken yet; else NULL. */
static kpti_chunk *next_sealed_locked(kpti_stream *stream, uint64_t ticks, uint64_t *last_ticks)
{
    kpti_chunk *chunk;
    if (!forget_given_locked(stream)) return NULL;
    chunk = stream->first;
    if (!chunk || (chunk == stream->last && !stream->sealed)) return NULL;
    *last_ticks = chunk->next ? chunk->next->base_ticks : ticks;
    return chunk;
}

/* Offers the oldest sealed chunk to the sink; 1 if there was one, and it was taken. */
static int offer(kpti_stream *stream, uint64_t ticks)
{
    kpti_tracer *tracer = stream->tracer;
    kpti_chunk *chunk;
    uint64_t last_ticks;
    int taken;
    kpti_session_lock();
    chunk = next_sealed_locked(stream, ticks, &last_ticks);
    kpti_session_unlock();
    if (!chunk) return 0;
    if (tracer->chunk_sink.flags & KPT_CHUNKS_WHOLE) send_news(stream, chunk->sequence);
    taken = send_events(&tracer->chunk_sink, stream, chunk, last_ticks) == KPT_OK;
    kpti_session_lock();
    if (taken)
        stream->given = chunk;
    else
        tracer->chunks_refused++;
    kpti_session_unlock();
    return taken;
}

/* 1: another was sealed meanwhile, and its owner has left it to us. */
static int end_handing(kpti_stream *stream)
{
    int again;
    kpti_session_lock();
    again = stream->handing == KPTI_HANDING_AGAIN;
    if (!again) (void)forget_given_locked(stream);
    stream->handing = again ? KPTI_HANDING_ONE : KPTI_HANDING_NOBODY;
    kpti_session_unlock();
    return again;
}

void kpti_hand_to_sink(kpti_stream *stream, uint64_t ticks)
{
    int mine;
    if (!stream->tracer->chunk_sink.sealed) return;
    kpti_session_lock();
    mine = stream->handing == KPTI_HANDING_NOBODY;
    stream->handing = mine ? KPTI_HANDING_ONE : KPTI_HANDING_AGAIN;
    kpti_session_unlock();
    for (; mine;
         ticks = kpti_tracer_ticks(stream->tracer)) { /* else somebody is at it, and looks again */
        while (offer(stream, ticks))
            continue;
        mine = end_handing(stream);
    }
}

/* The streams as they are now; those that come later are in front of them, and none goes before the
 * tracer does. */
static kpti_stream *all_streams(kpti_tracer *tracer)
{
    kpti_stream *first;
    kpti_session_lock();
    first = tracer->forked ? NULL : tracer->streams;
    kpti_session_unlock();
    return first;
}

void kpti_hand_all(kpti_tracer *tracer)
{
    kpti_reading_begin(tracer); /* seals what is there */
    kpti_reading_end(tracer);
    for (kpti_stream *s = all_streams(tracer); s; s = s->sibling)
        kpti_hand_to_sink(s, kpti_tracer_ticks(tracer));
    /* What an owner had begun to hand itself, it has handed when it is out of its callback. */
    kpti_session_settle(tracer);
}

/* --- the end, and copies ---------------------------------------------------------------------- */

/* The clock's points; where they are too near to tell the rate, with the counter's own. */
static void add_clock(kpti_table *table, const kpti_tracer *tracer)
{
    kpti_clock_point first = tracer->clock_start;
    if (!first.hz) first.hz = kpti_clock_rate_between(&first, &tracer->clock_stop);
    kpti_table_add_clock(table, &first);
    kpti_table_add_clock(table, &tracer->clock_stop);
}

/* All but the names. A run that goes on ends now. */
static void add_all(kpti_table *table, kpti_tracer *tracer)
{
    kpt_stats stats;
    KPT_INIT(&stats);
    kpti_python_tracer.get_stats(tracer, &stats);
    add_clock(table, tracer);
    kpti_session_lock();
    for (uint32_t i = 0; i < tracer->run_count; i++) {
        kpti_run run = tracer->runs[i];
        if (tracer->bit && i + 1 == tracer->run_count) run.stop_ticks = kpti_tracer_ticks(tracer);
        kpti_table_add_run(table, i, &run);
    }
    for (const kpti_stream *s = tracer->forked ? NULL : tracer->streams; s; s = s->sibling)
        add_thread(table, s);
    if (tracer->far_ends.count && !tracer->forked)
        kpti_table_add_far_ends(table, tracer->far_ends.ends, tracer->far_ends.count);
    kpti_session_unlock();
    kpti_table_add_stats(table, tracer->args.min_duration_ns, &stats);
}

static kpt_status send_all(kpti_tracer *tracer, const kpt_chunk_sink *sink)
{
    kpti_table table = {.env = tracer->env};
    kpt_status status;
    add_all(&table, tracer);
    status = send_table(sink, &table);
    kpti_table_free(&table);
    return status;
}

void kpti_hand_end(kpti_tracer *tracer)
{
    const kpt_chunk_sink *sink = &tracer->chunk_sink;
    if (!sink->sealed || !(sink->flags & KPT_CHUNKS_WHOLE) || tracer->forked) return;
    (void)send_names(tracer, sink, &tracer->given.names);
    (void)send_all(tracer, sink);
}

/* The chunks are held still while this runs. */
static kpt_status copy_streams(kpti_tracer *tracer, const kpt_chunk_sink *sink)
{
    kpt_status status = KPT_OK;
    for (kpti_stream *s = all_streams(tracer); s; s = s->sibling) {
        for (const kpti_chunk *c = s->first; c && status == KPT_OK; c = c->next)
            status =
                send_events(sink, s, c, c->next ? c->next->base_ticks : kpti_tracer_ticks(tracer));
    }
    return status;
}

kpt_status kpti_hand_copy(kpti_tracer *tracer, const kpt_chunk_sink *sink, kpti_error *error)
{
    uint32_t names = 0;
    kpt_status status = KPT_OK;
    kpti_reading_begin(tracer);
    if (tracer->bit) kpti_tracer_calibrate(tracer, &tracer->clock_stop);
    if (sink->flags & KPT_CHUNKS_WHOLE) {
        status = send_names(tracer, sink, &names);
        if (status == KPT_OK) status = send_all(tracer, sink);
    }
    if (status == KPT_OK) status = copy_streams(tracer, sink);
    kpti_reading_end(tracer);
    return status == KPT_OK ? status
                            : kpti_fail(error, status,
                                        "the sink refused a chunk, or there was "
                                        "no memory for a table");
}
