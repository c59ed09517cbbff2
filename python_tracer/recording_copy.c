#include "python_tracer/recording_copy.h"

#include "python_tracer/chunks/chunk_freeze.h"
#include "python_tracer/chunks/chunk_sink.h"
#include "python_tracer/chunks/ended_streams.h"
#include "python_tracer/chunks/sink_records.h"
#include "python_tracer/state/quiesce.h"
#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/tracing_lock.h"
#include "python_tracer/tracer_stats.h"

/* Returns the first of the current streams. Streams added later are in front of it. While a control call walks the
 * streams without the lock, none is freed: of a tracer with a sink only release_ended frees some, and of others only a
 * ring, which frees nothing while the chunks are frozen. */
static kpti_stream *all_streams(kpti_tracer *tracer)
{
    kpti_stream *first;
    kpti_tracing_lock();
    first = tracer->forked ? NULL : tracer->streams;
    kpti_tracing_unlock();
    return first;
}

/* Sends the sink the final descriptions of threads that have ended and whose chunks it has taken, and frees their
 * streams. What the sink refuses is sent again by the next flush. */
static void release_ended(kpti_tracer *tracer)
{
    enum { AT_ONCE = 1024 };
    const kpt_chunk_sink *sink = &tracer->chunk_sink;
    kpt_status status = KPT_OK;
    kpti_stream *ended;
    kpti_tracing_lock();
    if (!tracer->forked) kpti_ended_collect_locked(tracer);
    while (status == KPT_OK && (ended = kpti_ended_take_locked(tracer, AT_ONCE)) != NULL) {
        kpti_metadata table = {.env = tracer->env};
        kpti_tracing_unlock();
        for (const kpti_stream *s = sink->flags & KPT_CHUNKS_WHOLE ? ended : NULL; s;
             s = s->left_next)
            if (s->described != KPTI_DESCRIBED_FINAL) kpti_sink_add_thread(&table, s, s->index);
        status = kpti_sink_send_table(sink, &table);
        kpti_metadata_free(&table);
        kpti_tracing_lock();
        if (status == KPT_OK)
            kpti_ended_free_locked(tracer, ended);
        else
            kpti_ended_put_back_locked(tracer, ended);
    }
    kpti_tracing_unlock();
}

void kpti_recording_flush(kpti_tracer *tracer)
{
    kpti_chunks_freeze(tracer); /* seals all chunks */
    kpti_chunks_thaw(tracer);
    kpti_sink_describe(tracer, all_streams(tracer));
    for (kpti_stream *s = all_streams(tracer); s; s = s->sibling)
        kpti_sink_flush(s, kpti_tracer_ticks(tracer));
    /* If an owner had begun a push itself, it has finished the push when it has left its callback. */
    kpti_wait_for_callbacks(tracer);
    release_ended(tracer);
}

/* Adds the clock's points. If they are too close to determine the rate, adds the counter's own rate. */
static void add_clock(kpti_metadata *table, const kpti_tracer *tracer)
{
    kpti_clock_point first = tracer->clock_start;
    if (!first.hz) first.hz = kpti_clock_rate_between(&first, &tracer->clock_stop);
    kpti_metadata_add_clock(table, &first);
    kpti_metadata_add_clock(table, &tracer->clock_stop);
}

/* Adds everything but the names. A run that is still active ends now. A copy numbers its threads itself. */
static void add_all(kpti_metadata *table, kpti_tracer *tracer, const kpti_stream *first,
                    int is_copy)
{
    kpt_stats stats;
    KPT_INIT(&stats);
    kpti_tracer_stats(tracer, &stats);
    add_clock(table, tracer);
    kpti_tracing_lock();
    for (uint32_t i = 0; i < tracer->run_count; i++) {
        kpti_run run = tracer->runs[i];
        if (tracer->bit && i + 1 == tracer->run_count) run.stop_ticks = kpti_tracer_ticks(tracer);
        kpti_metadata_add_run(table, i, &run);
    }
    for (const kpti_stream *s = first; s; s = s->sibling)
        kpti_sink_add_thread(table, s, is_copy ? s->rank : s->index);
    if (tracer->cross_thread_ends.count && !tracer->forked)
        kpti_metadata_add_cross_thread_ends(table, tracer->cross_thread_ends.ends,
                                            tracer->cross_thread_ends.count);
    kpti_tracing_unlock();
    kpti_metadata_add_stats(table, tracer->args.min_duration_ns, &stats);
}

static kpt_status send_all(kpti_tracer *tracer, const kpt_chunk_sink *sink,
                           const kpti_stream *first, int is_copy)
{
    kpti_metadata table = {.env = tracer->env};
    kpt_status status;
    add_all(&table, tracer, first, is_copy);
    status = kpti_sink_send_table(sink, &table);
    kpti_metadata_free(&table);
    return status;
}

void kpti_recording_finish(kpti_tracer *tracer)
{
    const kpt_chunk_sink *sink = &tracer->chunk_sink;
    if (!sink->sealed || tracer->forked) return;
    release_ended(tracer);
    if (!(sink->flags & KPT_CHUNKS_WHOLE)) return;
    (void)kpti_sink_send_names(tracer, sink, &tracer->given.names);
    (void)send_all(tracer, sink, all_streams(tracer), 0);
}

/* Numbers the threads of a copy, the oldest from 0, without gaps for those that were freed. */
static void number_streams(kpti_stream *first)
{
    uint32_t count = 0;
    for (const kpti_stream *s = first; s; s = s->sibling)
        count++;
    for (kpti_stream *s = first; s; s = s->sibling)
        s->rank = --count;
}

/* The chunks are frozen while this runs. */
static kpt_status copy_streams(kpti_tracer *tracer, const kpt_chunk_sink *sink, kpti_stream *first)
{
    kpt_status status = KPT_OK;
    for (kpti_stream *s = first; s; s = s->sibling) {
        for (const kpti_chunk *c = s->first; c && status == KPT_OK; c = c->next)
            status = kpti_sink_send_events(
                sink, s, s->rank, c, c->next ? c->next->base_ticks : kpti_tracer_ticks(tracer));
    }
    return status;
}

kpt_status kpti_recording_copy(kpti_tracer *tracer, const kpt_chunk_sink *sink, kpti_error *error)
{
    uint32_t names = 0;
    kpt_status status = KPT_OK;
    kpti_stream *first;
    kpti_chunks_freeze(tracer);
    first = all_streams(tracer);
    number_streams(first);
    if (tracer->bit) kpti_tracer_calibrate(tracer, &tracer->clock_stop);
    if (sink->flags & KPT_CHUNKS_WHOLE) {
        status = kpti_sink_send_names(tracer, sink, &names);
        if (status == KPT_OK) status = send_all(tracer, sink, first, 1);
    }
    if (status == KPT_OK) status = copy_streams(tracer, sink, first);
    kpti_chunks_thaw(tracer);
    return status == KPT_OK
               ? status
               : kpti_fail(
                     error, status,
                     "get_chunks: the sink returned an error, or there was no memory for a table");
}
