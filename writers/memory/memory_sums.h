/* memory_sums.h: bytes and blocks by stack and pool, added up entry by entry: of blocks that are alive, were alive at the
 * peak, were ever allocated, and were temporary; with the series of live bytes, and moments where they are wanted. They take
 * memory for each stack in each pool, and none for an entry.
 *
 * Of a sampled recording all are estimates, and there are no temporary blocks: which allocations lie between is not known. */
#ifndef KPTI_WRITERS_MEMORY_MEMORY_SUMS_H
#define KPTI_WRITERS_MEMORY_MEMORY_SUMS_H

#include "writers/memory/memory_history.h"
#include "writers/memory_changes/memory_moments.h"
#include "writers/memory_changes/memory_series.h"
#include "writers/memory_changes/memory_temporary.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_memory_amount {
    double bytes;
    double blocks;
} kpti_memory_amount;

typedef struct kpti_memory_sum {
    uint32_t pool;
    uint32_t stack;
    uint64_t
        peak; /* number of the peak that at_peak is of; now has not changed since the later ones */
    kpti_memory_amount now;
    kpti_memory_amount at_peak;
    kpti_memory_amount in_all;
    kpti_memory_amount temporary;
} kpti_memory_sum;

/* Initialized by kpti_memory_sums_begin. */
typedef struct kpti_memory_sums {
    uint64_t sample_bytes;
    kpti_u64_map by_key; /* index of a sum + 1, by pool and stack */
    kpti_memory_sum *sums;
    uint32_t count;
    uint32_t capacity;
    kpti_memory_amount now;
    double peak_bytes;
    uint64_t peak; /* how many times there were more bytes than ever before */
    int64_t begin_ns;
    uint64_t peak_ns; /* the time of the last peak, and of the last entry, since the begin */
    uint64_t end_ns;
    uint64_t entries;
    uint64_t
        unseen_frees; /* of blocks from before the recording, or whose allocation was dropped */
    int has_moments;
    kpti_memory_series series;
    kpti_memory_temporary temporary;
    kpti_memory_moments moments;
} kpti_memory_sums;

/* WITHIN: of memory_temporary.h; 0: the default. */
void kpti_memory_sums_begin(kpti_memory_sums *sums, int64_t begin_ns, uint64_t sample_bytes,
                            uint32_t within);
/* From now on moments are kept: one at *AT_NS since the begin, or a bounded number if it is NULL. */
void kpti_memory_sums_keep_moments(kpti_memory_sums *sums, const uint64_t *at_ns);
/* Adds an entry of a history whose pools are POOLS. Returns 0 if there is no memory. */
int kpti_memory_sums_take(kpti_memory_sums *sums, const kpti_pool_tags *pools,
                          const kpti_memory_entry *entry);
/* Ends the moments, and counts the blocks that are alive again, without those that a newer one overlaps. Returns 0 if there
 * is no memory. */
int kpti_memory_sums_end(kpti_memory_sums *sums, kpti_memory_live *live);
void kpti_memory_sums_free(kpti_memory_sums *sums);

/* Returns the Unix time of a time since the begin. */
static inline int64_t kpti_memory_sums_time(const kpti_memory_sums *sums, uint64_t since_ns)
{
    return (int64_t)((uint64_t)sums->begin_ns + since_ns);
}

/* Returns what a sum had at the last peak. */
static inline const kpti_memory_amount *kpti_memory_sum_at_peak(const kpti_memory_sums *sums,
                                                                const kpti_memory_sum *sum)
{
    return sum->peak == sums->peak ? &sum->at_peak : &sum->now;
}

#ifdef __cplusplus
}
#endif
#endif
