#include "python_tracer/hooks/host_marks.h"

#include "python_tracer/chunks/chunk_budget.h"
#include "python_tracer/chunks/event_stream.h"
#include "python_tracer/hooks/record_event.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/thread_state.h"
#include "python_tracer/state/tracer_state.h"
#include "python_tracer/state/tracing_lock.h"

KPTI_HOT kpti_stream *kpti_host_stream(const kpti_thread *thread, const kpti_tracer *tracer)
{
    kpti_stream *stream = thread->streams;
    while (stream && stream->tracer != tracer)
        stream = stream->next;
    return stream && !atomic_load_explicit(&stream->ended, memory_order_relaxed) ? stream : NULL;
}

static void append(kpti_stream *stream, uint32_t word)
{
    uint64_t now = stream->clock ? stream->clock(stream->clock_ctx) : kpti_ticks();
    (void)kpti_stream_append(stream, word, &now);
}

/* Remembers an open span of the stream's thread. If there are too many, the outermost is forgotten. */
static void begin_span(kpti_stream *stream, uint32_t number)
{
    uint32_t *const open = stream->open_spans;
    atomic_store_explicit(&stream->spans, 1, memory_order_relaxed);
    if (stream->open_span_count == KPTI_OPEN_SPANS)
        memmove(open, open + 1, --stream->open_span_count * sizeof *open);
    open[stream->open_span_count++] = number;
}

/* Removes the open span NUMBER. Returns 0 if the stream does not remember it. */
static int end_span(kpti_stream *stream, uint32_t number)
{
    uint32_t *const open = stream->open_spans;
    uint32_t at = stream->open_span_count;
    while (at > 0 && open[at - 1] != number)
        at--;
    if (at == 0) return 0;
    stream->open_span_count--;
    memmove(open + at - 1, open + at, (stream->open_span_count - at + 1) * sizeof *open);
    return 1;
}

/* Records the end of a span that began on another thread. */
static void end_far_span(kpti_tracer *tracer, uint32_t number)
{
    kpti_tracing_lock();
    if (tracer->bit)
        kpti_cross_thread_ends_add(tracer->env, &tracer->cross_thread_ends, number,
                                   kpti_tracer_ticks(tracer));
    kpti_tracing_unlock();
}

/* Records a mark in the thread's own stream. Returns 0 if the mark does not belong there. */
static int mark_own(kpti_stream *stream, uint32_t what, uint32_t number)
{
    static const uint32_t kinds[] = {[KPT_MARK_POINT] = KPTI_EVENT_MARK,
                                     [KPT_MARK_BEGIN] = KPTI_EVENT_SPAN_BEGIN,
                                     [KPT_MARK_END] = KPTI_EVENT_SPAN_END};
    if (!stream) return 0;
    atomic_store_explicit(&stream->host_writes, 1, memory_order_relaxed);
    if (what == KPT_MARK_BEGIN) begin_span(stream, number);
    if (what == KPT_MARK_END && !end_span(stream, number)) return 0;
    append(stream, number << KPTI_KIND_BITS | kinds[what]);
    return 1;
}

/* Makes TRACER record the lines that calls are made from, from now on. */
static void enable_caller_lines(kpti_tracer *tracer)
{
    kpti_tracing_lock();
    atomic_store_explicit(&tracer->needs_caller_lines, 1, memory_order_relaxed);
    kpti_invalidate_caches();
    kpti_tracing_unlock();
}

void kpti_mark(kpti_tracer *tracer, uint32_t what, uint64_t number)
{
    const uint32_t known = (uint32_t)number & KPTI_MAX_NUMBER;
    kpti_thread *thread = kpti_thread_self;
    int marked = 0;
    if (what == KPT_MARK_POINT && !known &&
        !atomic_load_explicit(&tracer->needs_caller_lines, memory_order_relaxed))
        enable_caller_lines(tracer);
    if (thread) {
        kpti_callback_enter(thread, 0); /* a walk of the frames begins with the innermost */
        marked = mark_own(kpti_host_stream(thread, tracer), what, known);
        kpti_slow_end(thread);
    }
    if (!marked && what == KPT_MARK_END) end_far_span(tracer, known);
}
