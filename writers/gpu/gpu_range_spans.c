#include "writers/gpu/gpu_range_spans.h"

static kpt_status add_to(kpti_gpu_range_spans *s, uint32_t range, uint32_t track,
                         const kpt_gpu_event *work)
{
    uint32_t *number = kpti_u64_map_at(&s->number_of, (uint64_t)range << 32 | track);
    kpti_gpu_range_span *span;
    kpt_status status;
    if (!number) return KPT_E_MEMORY;
    if (!*number) {
        status = kpti_array_reach(&s->heap, &s->items, &s->capacity, s->count, sizeof *s->items);
        if (status != KPT_OK) return status;
        s->items[s->count] = (kpti_gpu_range_span){range, track, work->start_ns, work->end_ns};
        *number = ++s->count;
    }
    span = &s->items[*number - 1];
    if (work->start_ns < span->start_ns) span->start_ns = work->start_ns;
    if (work->end_ns > span->end_ns) span->end_ns = work->end_ns;
    return KPT_OK;
}

kpt_status kpti_gpu_range_spans_add(kpti_gpu_range_spans *s, const kpti_gpu_launches *launches,
                                    const kpti_gpu_launch *launch, uint32_t track,
                                    const kpt_gpu_event *work)
{
    kpt_status status = KPT_OK;
    s->number_of.heap = s->heap;
    for (uint32_t range = launch->range; range && status == KPT_OK;
         range = launches->ranges[range - 1].outer)
        status = add_to(s, range - 1, track, work);
    return status;
}

void kpti_gpu_range_spans_free(kpti_gpu_range_spans *s)
{
    kpti_heap_give(&s->heap, s->items, s->capacity * sizeof *s->items);
    kpti_u64_map_free(&s->number_of);
}
