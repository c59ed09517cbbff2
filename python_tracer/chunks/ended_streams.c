#include "python_tracer/chunks/ended_streams.h"

#include "core/base/assert.h"
#include "core/base/tick_counter.h"
#include "python_tracer/chunks/stream_owner.h"
#include "python_tracer/state/tracing_lock.h"

void kpti_ended_add_locked(kpti_stream *stream, int is_in_use)
{
    kpti_tracer *tracer = stream->tracer;
    kpti_stream **end = tracer->left ? tracer->left_end : &tracer->left;
    kpti_assert(kpti_tracing_lock_is_mine() && !stream->thread && !stream->left_next);
    stream->left_ticks = kpti_ticks();
    stream->is_in_use = is_in_use != 0;
    *end = stream;
    tracer->left_end = &stream->left_next;
}

/* Frees a stream that is on no list but the tracer's. The tracer keeps its counters. */
static void free_locked(kpti_tracer *tracer, kpti_stream *stream)
{
    kpti_assert(!tracer->readers && stream->thread_flags & KPT_THREAD_ENDED);
    tracer->freed.threads++;
    tracer->freed.events_dropped +=
        atomic_load_explicit(&stream->dropped_total, memory_order_relaxed);
    *stream->sibling_link = stream->sibling;
    if (stream->sibling) stream->sibling->sibling_link = stream->sibling_link;
    kpti_stream_free(stream);
}

static void put_locked(kpti_tracer *tracer, kpti_stream *stream)
{
    stream->left_next = tracer->done;
    tracer->done = stream;
}

void kpti_ended_is_empty_locked(kpti_tracer *tracer)
{
    kpti_stream *const stream = tracer->left;
    kpti_assert(kpti_tracing_lock_is_mine() && !stream->first && !stream->later);
    stream->last = NULL;
    tracer->left = stream->left_next;
    stream->left_next = NULL;
    if (stream->is_in_use) return;
    if (tracer->chunk_sink.sealed)
        put_locked(tracer, stream);
    else
        free_locked(tracer, stream);
}

void kpti_ended_collect_locked(kpti_tracer *tracer)
{
    kpti_stream **link = &tracer->left;
    kpti_assert(kpti_tracing_lock_is_mine());
    while (*link) {
        kpti_stream *const stream = *link;
        if (stream->first || stream->later || stream->sink_state || stream->is_in_use) {
            link = &stream->left_next;
            continue;
        }
        *link = stream->left_next;
        put_locked(tracer, stream);
    }
    tracer->left_end = link;
}

kpti_stream *kpti_ended_take_locked(kpti_tracer *tracer, uint32_t max)
{
    kpti_stream *const first = tracer->readers ? NULL : tracer->done;
    kpti_stream **link = &tracer->done;
    if (!first) return NULL;
    kpti_assert(kpti_tracing_lock_is_mine());
    for (uint32_t i = 0; *link && i < max; i++)
        link = &(*link)->left_next;
    tracer->done = *link;
    *link = NULL;
    return first;
}

void kpti_ended_put_back_locked(kpti_tracer *tracer, kpti_stream *streams)
{
    while (streams) {
        kpti_stream *const stream = streams;
        streams = stream->left_next;
        put_locked(tracer, stream);
    }
}

void kpti_ended_free_locked(kpti_tracer *tracer, kpti_stream *streams)
{
    kpti_assert(kpti_tracing_lock_is_mine());
    while (streams) {
        kpti_stream *const stream = streams;
        streams = stream->left_next;
        free_locked(tracer, stream);
    }
}
