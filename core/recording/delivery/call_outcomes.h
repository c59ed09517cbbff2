/* call_outcomes.h: the outcome of each call of a thread, by call index: whether it is delivered, with which
 * flags, and when it ends. A first pass computes it for deliveries that need it when a call begins. Memory: one
 * byte per call, nine with ends. In parts (see replay_types.h), each part has its own outcome. */
#ifndef KPTI_CORE_RECORDING_DELIVERY_CALL_OUTCOMES_H
#define KPTI_CORE_RECORDING_DELIVERY_CALL_OUTCOMES_H

#include "core/recording/delivery/batcher.h"

enum { KPTI_FATE_PAGE = 1 << 14, KPTI_FATE_DELIVERED = 1 << 7 };

/* The counts that the end of a collection carries. */
typedef struct kpti_gc_counts {
    uint64_t value1;
    uint64_t value2;
} kpti_gc_counts;

typedef struct kpti_fate_page {
    int64_t *ends; /* NULL if ends are not stored */
    uint8_t *flags;
} kpti_fate_page;

typedef struct kpti_fates {
    const kpti_env *env;
    int with_ends;
    /* upper bound for a track that is not in parts; parts are not bounded by events */
    uint64_t most_calls;
    int in_parts;
    uint64_t page_count;
    kpti_fate_page *pages; /* by index / KPTI_FATE_PAGE; only ended calls are filled in */
    kpti_gc_counts *gcs;   /* of the collections in order; only with ends */
    uint64_t gc_count;
    uint64_t gc_room;
} kpti_fates;

/* Replays TRACK of the batcher's recording. Returns 0 if there is no memory. The caller must call
 * kpti_fates_free in any case; zeroed fates are valid for it. */
int kpti_fates_find(kpti_fates *fates, const kpti_batcher *b, uint32_t track, int with_ends);
void kpti_fates_free(kpti_fates *fates);

/* Returns KPTI_FATE_DELIVERED and the flags that the call ends with, or 0 if the call is not delivered. */
static inline uint32_t kpti_fates_flags(const kpti_fates *fates, uint64_t index)
{
    return fates->pages[index / KPTI_FATE_PAGE].flags[index % KPTI_FATE_PAGE];
}

static inline int64_t kpti_fates_end(const kpti_fates *fates, uint64_t index)
{
    return fates->pages[index / KPTI_FATE_PAGE].ends[index % KPTI_FATE_PAGE];
}

#endif
