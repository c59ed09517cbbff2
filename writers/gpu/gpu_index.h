/* gpu_index.h: an index that a writer needs before it writes the first event of a log: which correlation
 * numbers connect a call to the work it started, and which streams there are. */
#ifndef KPTI_WRITERS_GPU_GPU_INDEX_H
#define KPTI_WRITERS_GPU_GPU_INDEX_H

#include "writers/gpu/gpu_log.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A track of a device: a stream, or KPT_GPU_NONE for events without a stream. */
typedef struct kpti_gpu_track {
    uint32_t device;
    uint32_t stream;
} kpti_gpu_track;

/* Zeroed at first, except for heap. */
typedef struct kpti_gpu_index {
    kpti_heap heap;
    kpti_gpu_track *tracks; /* in the order of their first events */
    uint32_t track_capacity;
    uint32_t track_count;
    kpti_u64_map track_numbers; /* the value is the number + 1 */
    kpti_u64_map links;
} kpti_gpu_index;

/* Returns KPT_OK, KPT_E_MEMORY or KPT_E_LIMIT. The caller must call kpti_gpu_index_free in any case. */
kpt_status kpti_gpu_index_make(kpti_gpu_index *index, const kpti_gpu_log *log);
void kpti_gpu_index_free(kpti_gpu_index *index);

/* Returns the number of an event's track, or UINT32_MAX if the event does not belong to a device. */
uint32_t kpti_gpu_track_of(kpti_gpu_index *index, const kpt_gpu_event *event);

/* Return whether an arrow begins at EVENT, a call, or ends at EVENT, some work. There is an arrow for each
 * piece of work that a call started. If several calls have the same number, arrows begin at the first one
 * passed here. */
int kpti_gpu_arrow_leaves(kpti_gpu_index *index, const kpt_gpu_event *event);
int kpti_gpu_arrow_comes(kpti_gpu_index *index, const kpt_gpu_event *event);

#ifdef __cplusplus
}
#endif
#endif
