/* call_outcomes.h: the outcome of each call of a thread, by call index: whether it is delivered, with which
 * flags, and when it ends. A first pass computes it for deliveries that need it when a call begins. Memory: one
 * byte per call, nine with ends, and with ends 16 for each range. In parts (see replay_types.h), each part has its own
 * outcome. */
#ifndef KPTI_CORE_RECORDING_DELIVERY_CALL_OUTCOMES_H
#define KPTI_CORE_RECORDING_DELIVERY_CALL_OUTCOMES_H

#include "core/base/assert.h"
#include "core/recording/delivery/batcher.h"

enum { KPTI_OUTCOME_PAGE = 1 << 14, KPTI_OUTCOME_DELIVERED = 1 << 7 };

/* The counts that the end of a collection carries. */
typedef struct kpti_gc_counts {
    uint64_t value1;
    uint64_t value2;
} kpti_gc_counts;

/* The end of a range. */
typedef struct kpti_range_outcome {
    int64_t end_ns;
    uint32_t number; /* that its begin and its end share */
    uint32_t is_open;
} kpti_range_outcome;

typedef struct kpti_outcome_page {
    int64_t *ends; /* NULL if ends are not stored */
    uint8_t *flags;
} kpti_outcome_page;

typedef struct kpti_call_outcomes {
    const kpti_env *env;
    int with_ends;
    /* upper bound for a track that is not in parts; parts are not bounded by events */
    uint64_t max_calls;
    int in_parts;
    uint64_t page_count;
    kpti_outcome_page *pages; /* by index / KPTI_OUTCOME_PAGE; only ended calls are filled in */
    kpti_gc_counts *gcs;      /* of the collections in order; only with ends */
    uint64_t gc_count;
    uint64_t gc_capacity;
    kpti_range_outcome *ranges; /* in the order of their begins; only with ends */
    uint64_t range_count;
    uint64_t range_capacity;
    uint64_t first_open; /* no range before it is open */
} kpti_call_outcomes;

/* Replays TRACK of the batcher's recording. Returns 0 if there is no memory. The caller must call
 * kpti_call_outcomes_free in any case; zeroed outcomes are valid for it. */
int kpti_call_outcomes_prepass(kpti_call_outcomes *outcomes, kpti_batcher *b, uint32_t track,
                               int with_ends);
void kpti_call_outcomes_free(kpti_call_outcomes *outcomes);

/* Returns KPTI_OUTCOME_DELIVERED and the flags that the call ends with, or 0 if the call is not delivered. */
static inline uint32_t kpti_call_outcomes_flags(const kpti_call_outcomes *outcomes, uint64_t index)
{
    kpti_assert(index / KPTI_OUTCOME_PAGE < outcomes->page_count);
    return outcomes->pages[index / KPTI_OUTCOME_PAGE].flags[index % KPTI_OUTCOME_PAGE];
}

static inline int64_t kpti_call_outcomes_end(const kpti_call_outcomes *outcomes, uint64_t index)
{
    kpti_assert(outcomes->with_ends && index / KPTI_OUTCOME_PAGE < outcomes->page_count);
    return outcomes->pages[index / KPTI_OUTCOME_PAGE].ends[index % KPTI_OUTCOME_PAGE];
}

#endif
