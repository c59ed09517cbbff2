/* gpu_index.h: what a writer has to know of a log before it writes the first event: which numbers link a
 * call to what it started, and which streams there are. */
#ifndef KPTI_WRITERS_GPU_GPU_INDEX_H
#define KPTI_WRITERS_GPU_GPU_INDEX_H

#include "writers/gpu/gpu_log.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A row of a device: its stream, or KPT_GPU_NONE for what belongs to none. */
typedef struct kpti_gpu_track {
    uint32_t device;
    uint32_t stream;
} kpti_gpu_track;

/* Begins as zeroes with a heap. */
typedef struct kpti_gpu_index {
    kpti_heap heap;
    kpti_gpu_track *tracks; /* in the order in which they come */
    uint32_t track_capacity;
    uint32_t track_count;
    kpti_u64_map track_numbers; /* one more than the number */
    kpti_u64_map links;
} kpti_gpu_index;

/* KPT_OK, KPT_E_MEMORY or KPT_E_LIMIT; to be freed in any case. */
kpt_status kpti_gpu_index_make(kpti_gpu_index *index, const kpti_gpu_log *log);
void kpti_gpu_index_free(kpti_gpu_index *index);

/* Where an event of a device stands: the number of its track; UINT32_MAX: it is none of a device's. */
uint32_t kpti_gpu_track_of(kpti_gpu_index *index, const kpt_gpu_event *event);

/* Whether an arrow leaves EVENT, a call, or comes in: there is one for each thing that was started. Of
 * several calls of one number, the first that is asked about has them. */
int kpti_gpu_arrow_leaves(kpti_gpu_index *index, const kpt_gpu_event *event);
int kpti_gpu_arrow_comes(kpti_gpu_index *index, const kpt_gpu_event *event);

#ifdef __cplusplus
}
#endif
#endif
