#include "mark.h"

#include "record.h"
#include "room.h"

static kpti_stream *stream_of(const kpti_thread *thread, const kpti_tracer *tracer)
{
    kpti_stream *stream = thread->streams;
    while (stream && stream->tracer != tracer)
        stream = stream->next;
    return stream;
}

/* Appends; a chunk that has to begin with the open calls can't be begun here without Python. */
static void append(kpti_stream *stream, uint32_t word, uint64_t now)
{
    if (kpti_stream_append_quick(stream, word, now)) return;
    if (kpti_room_tells_opens(stream->tracer) && !kpti_may_touch_python())
        atomic_fetch_add_explicit(&stream->dropped_total, 1, memory_order_relaxed);
    else
        (void)kpti_stream_append_slow(stream, word, now);
}

void kpti_mark(kpti_tracer *tracer, uint32_t what, uint64_t number)
{
    static const uint32_t kinds[] = {[KPT_MARK_POINT] = KPTI_EVENT_MARK,
                                     [KPT_MARK_BEGIN] = KPTI_EVENT_SPAN_BEGIN,
                                     [KPT_MARK_END] = KPTI_EVENT_SPAN_END};
    uint32_t known = (uint32_t)number & KPTI_MOST_NUMBER;
    kpti_thread *thread = kpti_thread_self;
    kpti_stream *stream;
    if (!thread) return;
    atomic_store_explicit(&thread->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    stream = stream_of(thread, tracer);
    if (stream && !atomic_load_explicit(&stream->ended, memory_order_relaxed)) {
        if (what == KPT_MARK_BEGIN) atomic_store_explicit(&stream->spans, 1, memory_order_relaxed);
        append(stream, known << KPTI_KIND_BITS | kinds[what], kpti_ticks());
    }
    kpti_record_end(thread);
}
