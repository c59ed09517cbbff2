/* memory_segments.h: the regions of memory that contained blocks of a device, and the blocks that were alive
 * there at the end. Regions are whole megabytes; adjacent ones are joined. */
#ifndef KPTI_WRITERS_MEMORY_MEMORY_SEGMENTS_H
#define KPTI_WRITERS_MEMORY_MEMORY_SEGMENTS_H

#include "writers/memory/memory_history.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_memory_segment {
    uint64_t begin;
    uint64_t end;
    uint64_t first; /* its first block, an index in blocks */
    uint64_t count;
    uint64_t allocated; /* live bytes in the segment */
} kpti_memory_segment;

typedef struct kpti_memory_segments {
    kpti_memory_segment *segments; /* by address */
    uint64_t segment_count;
    uint32_t *blocks; /* indices of entries, by address */
    uint64_t block_count;
} kpti_memory_segments;

/* Finds the segments of DEVICE. Returns 0 if there is no memory. */
int kpti_memory_segments_find(kpti_memory_segments *out, const kpti_memory_history *history,
                              uint32_t device);
void kpti_memory_segments_free(kpti_memory_segments *segments);

#ifdef __cplusplus
}
#endif
#endif
