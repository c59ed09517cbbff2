/* gpu_range_spans.h: where the ranges of the host are on the streams of a GPU: from the begin of the first piece of work
 * that was launched in a range to the end of the last one, for each stream. */
#ifndef KPTI_WRITERS_GPU_GPU_RANGE_SPANS_H
#define KPTI_WRITERS_GPU_GPU_RANGE_SPANS_H

#include "writers/gpu/gpu_launches.h"

typedef struct kpti_gpu_range_span {
    uint32_t range; /* index in the launches' ranges */
    uint32_t track; /* number of a track of gpu_index.h */
    int64_t start_ns;
    int64_t end_ns;
} kpti_gpu_range_span;

/* Zeroed at first, except for heap. */
typedef struct kpti_gpu_range_spans {
    kpti_heap heap;
    kpti_gpu_range_span *items;
    uint32_t capacity;
    uint32_t count;
    kpti_u64_map number_of; /* by range and track: index + 1 */
} kpti_gpu_range_spans;

/* Adds some work on TRACK to the ranges around its launch. Returns KPT_OK, KPT_E_MEMORY or KPT_E_LIMIT. */
kpt_status kpti_gpu_range_spans_add(kpti_gpu_range_spans *spans, const kpti_gpu_launches *launches,
                                    const kpti_gpu_launch *launch, uint32_t track,
                                    const kpt_gpu_event *work);
void kpti_gpu_range_spans_free(kpti_gpu_range_spans *spans);

#endif
