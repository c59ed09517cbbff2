/* memory_survey.h: what a writer needs to know of a whole history before it writes the first byte: levels, the peak, the
 * blocks that are alive at the end, and the regions of memory in which blocks were. */
#ifndef KPTI_WRITERS_MEMORY_MEMORY_SURVEY_H
#define KPTI_WRITERS_MEMORY_MEMORY_SURVEY_H

#include "writers/memory/memory_history.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_memory_region {
    uint64_t begin;
    uint64_t end;
    uint32_t device;
} kpti_memory_region;

typedef struct kpti_memory_survey {
    const kpti_memory_history *history;
    uint64_t
        unseen_frees; /* of blocks from before the recording, or whose allocation was dropped */
    kpti_memory_level end;
    kpti_memory_level peak; /* the most bytes alive, not weighted */
    double peak_weighed;    /* the most represented bytes … */
    uint64_t peak_after;    /* … and the entries up to them */
    int64_t peak_time_ns;
    int64_t end_time_ns;
    uint64_t *entries_of; /* number of entries by device */
    uint32_t
        *alive; /* blocks alive at the end by space and address: indices in the history's live */
    uint32_t alive_count;
    kpti_memory_region
        *regions; /* by device and address: whole megabytes; adjacent ones are joined */
    uint64_t region_count;
} kpti_memory_survey;

/* Reads all entries once. The blocks at the end are valid until the history is read again. The caller frees the survey in
 * either case. Returns 0 if there is no memory. */
int kpti_memory_survey_make(kpti_memory_survey *survey, kpti_memory_history *history);
void kpti_memory_survey_free(kpti_memory_survey *survey);

/* The blocks in a region: the first index in alive, and the next block from *INDEX on, or NULL after the last one. Blocks of
 * other devices may be between them. */
uint32_t kpti_memory_region_first(const kpti_memory_survey *survey,
                                  const kpti_memory_region *region);
const kpti_memory_block *kpti_memory_region_next(const kpti_memory_survey *survey,
                                                 const kpti_memory_region *region, uint32_t *index);

#ifdef __cplusplus
}
#endif
#endif
