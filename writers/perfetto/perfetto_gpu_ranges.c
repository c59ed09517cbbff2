#include "writers/perfetto/perfetto_gpu_ranges.h"

#include <stdlib.h>

#include "writers/perfetto/perfetto_packets.h"
#include "writers/perfetto/perfetto_tracks.h"

/* Outer spans come first; the number of an outer range is the smaller one. */
static int by_track_and_time(const void *a, const void *b)
{
    const kpti_gpu_range_span *one = a;
    const kpti_gpu_range_span *two = b;
    if (one->track != two->track) return one->track < two->track ? -1 : 1;
    if (one->start_ns != two->start_ns) return one->start_ns < two->start_ns ? -1 : 1;
    if (one->end_ns != two->end_ns) return one->end_ns > two->end_ns ? -1 : 1;
    return (one->range > two->range) - (one->range < two->range);
}

static void put_begin(kpti_perfetto *w, uint64_t track, const kpti_gpu_range_span *span)
{
    enum { ROOM = KPTI_PERFETTO_MAX_NAME * KPTI_UTF8_MAX_GROWTH };
    const kpti_gpu_range *range = &w->base.operators->launches.ranges[span->range];
    kpti_perfetto_event event;
    char *at = kpti_perfetto_open(w, &w->own, span->start_ns, EVENT_BEGIN, ROOM, &event);
    at = kpti_proto_number(at, EVENT_TRACK, track);
    at = kpti_proto_text(at, EVENT_CATEGORY, kpt_str_of("gpu_user_annotation"), SIZE_MAX);
    at = kpti_proto_text(at, EVENT_NAME, (kpt_str){range->name, range->name_size},
                         KPTI_PERFETTO_MAX_NAME);
    kpti_perfetto_close(w, &event, at);
}

static void put_end(kpti_perfetto *w, uint64_t track, int64_t ns)
{
    kpti_perfetto_event event;
    char *at = kpti_perfetto_open(w, &w->own, ns, EVENT_END, 0, &event);
    kpti_perfetto_close(w, &event, kpti_proto_number(at, EVENT_TRACK, track));
}

/* The spans that are open on the track of a stream: their ends, which do not grow. */
typedef struct open_spans {
    kpti_heap heap;
    int64_t *ends;
    uint32_t capacity;
    uint32_t count;
    uint64_t track;
} open_spans;

static void end_until(kpti_perfetto *w, open_spans *open, int64_t ns)
{
    for (; open->count && open->ends[open->count - 1] <= ns; open->count--)
        put_end(w, open->track, open->ends[open->count - 1]);
}

static uint64_t make_track(kpti_perfetto *w, const kpti_perfetto_stream *stream)
{
    return kpti_perfetto_make_track_in(w, stream->stream, kpt_str_of("annotations"));
}

static kpt_status put_span(kpti_perfetto *w, open_spans *open, const kpti_gpu_range_span *span,
                           const kpti_perfetto_stream *stream)
{
    const int64_t end_ns = span->end_ns > span->start_ns ? span->end_ns : span->start_ns;
    kpt_status status;
    if (open->count && open->ends[open->count - 1] < end_ns) {
        const uint64_t track = make_track(w, stream);
        put_begin(w, track, span);
        put_end(w, track, end_ns);
        return KPT_OK;
    }
    status = kpti_array_reach(&open->heap, &open->ends, &open->capacity, open->count,
                              sizeof *open->ends);
    if (status != KPT_OK) return status;
    put_begin(w, open->track, span);
    open->ends[open->count++] = end_ns;
    return KPT_OK;
}

kpt_status kpti_perfetto_gpu_ranges(kpti_perfetto *w, kpti_gpu_range_spans *spans,
                                    const kpti_perfetto_stream *streams)
{
    open_spans open = {.heap = w->base.heap};
    kpt_status status = KPT_OK;
    if (spans->count) qsort(spans->items, spans->count, sizeof *spans->items, by_track_and_time);
    for (uint32_t i = 0; i < spans->count && status == KPT_OK; i++) {
        const kpti_gpu_range_span *span = &spans->items[i];
        if (!i || span->track != span[-1].track) {
            end_until(w, &open, INT64_MAX);
            open.track = make_track(w, &streams[span->track]);
        }
        end_until(w, &open, span->start_ns);
        status = put_span(w, &open, span, &streams[span->track]);
    }
    end_until(w, &open, INT64_MAX);
    kpti_heap_give(&open.heap, open.ends, open.capacity * sizeof *open.ends);
    return status;
}
