/* perfetto_gpu_ranges.h: the ranges of the host on the streams of GPUs in a Perfetto trace, as Kineto's
 * gpu_user_annotation. Only the Perfetto writer uses this. */
#ifndef KPTI_WRITERS_PERFETTO_PERFETTO_GPU_RANGES_H
#define KPTI_WRITERS_PERFETTO_PERFETTO_GPU_RANGES_H

#include "writers/gpu/gpu_range_spans.h"
#include "writers/perfetto/perfetto_state.h"

/* The uuids of the tracks of a stream. */
typedef struct kpti_perfetto_stream {
    uint64_t device;
    uint64_t stream;
} kpti_perfetto_stream;

/* Writes SPANS, which it sorts, on a track "annotations" below that of their stream. A span that crosses another one has
 * such a track of its own. STREAMS are by track of the spans. Returns KPT_OK, KPT_E_MEMORY or KPT_E_LIMIT. */
kpt_status kpti_perfetto_gpu_ranges(kpti_perfetto *writer, kpti_gpu_range_spans *spans,
                                    const kpti_perfetto_stream *streams);

#endif
