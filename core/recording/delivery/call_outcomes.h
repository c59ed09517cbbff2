/* call_outcomes.h: what becomes of each call of a thread, by its index: whether it is delivered, with which
 * flags, and when it ends. Found in a first pass, for deliveries that must know it when a call begins:
 * one byte a call, with ends nine. In parts (see replay.h), what is said of a call holds for each part. */
#ifndef KPTI_CORE_RECORDING_DELIVERY_CALL_OUTCOMES_H
#define KPTI_CORE_RECORDING_DELIVERY_CALL_OUTCOMES_H

#include "core/recording/delivery/batcher.h"

enum { KPTI_FATE_PAGE = 1 << 14, KPTI_FATE_DELIVERED = 1 << 7 };

/* What a GC's end tells. */
typedef struct kpti_gc_counts {
    uint64_t value1;
    uint64_t value2;
} kpti_gc_counts;

typedef struct kpti_fate_page {
    int64_t *ends; /* NULL: without ends */
    uint8_t *flags;
} kpti_fate_page;

typedef struct kpti_fates {
    const kpti_env *env;
    int with_ends;
    uint64_t
        most_calls; /* a track can't have more, unless it is in parts: those are not bounded by its events */
    int in_parts;
    uint64_t page_count;
    kpti_fate_page *pages; /* by index / KPTI_FATE_PAGE; of calls that have ended */
    kpti_gc_counts *gcs;   /* of the GCs, one after the other; only with ends */
    uint64_t gc_count;
    uint64_t gc_room;
} kpti_fates;

/* Replays TRACK of the batcher's recording. 0 when there is no memory. In any case kpti_fates_free is
 * to be called, which also takes zeroes. */
int kpti_fates_find(kpti_fates *fates, const kpti_batcher *b, uint32_t track, int with_ends);
void kpti_fates_free(kpti_fates *fates);

/* KPTI_FATE_DELIVERED and the flags that the call ends with; 0: it is not delivered. */
static inline uint32_t kpti_fates_flags(const kpti_fates *fates, uint64_t index)
{
    return fates->pages[index / KPTI_FATE_PAGE].flags[index % KPTI_FATE_PAGE];
}

static inline int64_t kpti_fates_end(const kpti_fates *fates, uint64_t index)
{
    return fates->pages[index / KPTI_FATE_PAGE].ends[index % KPTI_FATE_PAGE];
}

#endif
