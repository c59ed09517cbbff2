/* sampled_blocks.h: decides which allocations are sampled, and keeps the live samples. A free is
 * recorded only if its block is a live sample.
 *
 * On average one byte in sample_bytes is chosen, at random; the block that contains it is sampled.
 * So a block of SIZE bytes is sampled with probability 1 - exp(-SIZE / sample_bytes), and
 * represents the inverse of that number of blocks. */
#ifndef KPTI_CORE_MEMORY_LOG_SAMPLED_BLOCKS_H
#define KPTI_CORE_MEMORY_LOG_SAMPLED_BLOCKS_H

#include <stdatomic.h>

#include "core/base/hash.h"
#include "core/memory_log/allocation_log.h"

enum { KPTI_SAMPLE_FILTER_BITS = 16 };

/* One bit for each live sample, by hash of its address. Most frees need only this test. */
extern _Atomic uint64_t kpti_sample_filter[(1 << KPTI_SAMPLE_FILTER_BITS) / 64]
    __attribute__((visibility("hidden")));

static inline uint32_t kpti_sample_bit(uintptr_t address)
{
    return (uint32_t)(kpti_hash_spread(address) >> (64 - KPTI_SAMPLE_FILTER_BITS));
}

/* Whether a block may be a live sample. */
static inline int kpti_sample_may_live(uintptr_t address)
{
    const uint32_t bit = kpti_sample_bit(address);
    return atomic_load_explicit(&kpti_sample_filter[bit / 64], memory_order_relaxed) >> bit % 64 &
           1;
}

/* The slow path of kpti_sample_takes: the counter is not started yet, or has reached a chosen
 * byte. */
int kpti_sample_takes_slow(kpti_memory_thread *thread, _Atomic uint64_t *until, uint64_t size,
                           uint64_t mean);

/* Counts a block of SIZE bytes and returns 1 if none of its bytes is chosen. Returns 0 without
 * counting if one may be, or if SIZE is greater than MAX. One branch tests both. */
static inline int kpti_sample_passes(_Atomic uint64_t *until, uint64_t size, uint64_t max)
{
    const uint64_t left = atomic_load_explicit(until, memory_order_relaxed);
    if (__builtin_expect(!((size <= max) & (size < left)), 0)) return 0;
    atomic_store_explicit(until, left - size, memory_order_relaxed);
    return 1;
}

/* Whether a block of SIZE bytes is sampled, at one byte in MEAN. UNTIL is one of the thread's
 * counters. */
static inline int kpti_sample_takes(kpti_memory_thread *thread, _Atomic uint64_t *until,
                                    uint64_t size, uint64_t mean)
{
    return !kpti_sample_passes(until, size, UINT64_MAX) &&
           kpti_sample_takes_slow(thread, until, size, mean);
}

/* Adds a live sample in POOL. Returns 0 if there is no memory. */
int kpti_sample_add(uintptr_t address, uint32_t pool);
/* Removes a live sample. Returns its pool plus one, or 0 if the block is not a sample. */
uint32_t kpti_sample_remove(uintptr_t address);

/* Whether a new block of SIZE bytes is recorded; called once for each block. A block smaller than
 * MIN is counted with the small blocks. */
static inline int kpti_sample_begins(kpti_memory_inside in, uint64_t size, uint64_t min)
{
    const uint64_t mean = kpti_memory_log_wish(in.log)->sample_bytes;
    return !mean ||
           kpti_sample_takes(in.thread,
                             size < min ? &kpti_memory_of_small.until : &kpti_memory_until_sample,
                             size, mean);
}

/* As kpti_sample_begins, for the block at ADDRESS that is resized in the raw domain. pymalloc may
 * do that with a block that pymalloc_sampler.h has already counted; it is then not counted again.
 * The check succeeds only once, since the address may later belong to another block. */
static inline int kpti_sample_begins_again(kpti_memory_inside in, uintptr_t address, uint64_t size)
{
    _Atomic uintptr_t *resized = &kpti_memory_of_small.resized;
    if (address && atomic_load_explicit(resized, memory_order_relaxed) == address) {
        atomic_store_explicit(resized, 0, memory_order_relaxed);
        return 0;
    }
    return kpti_sample_begins(in, size, 0);
}

/* Adds a live sample if the log samples. Returns 0 if there is no memory. */
static inline int kpti_sample_lives(kpti_memory_inside in, uintptr_t address, uint32_t pool)
{
    return !kpti_memory_log_wish(in.log)->sample_bytes || kpti_sample_add(address, pool);
}

/* Returns the pool plus one of the block at ADDRESS if its free is recorded, otherwise 0. Must be
 * called before the block is freed: afterwards another thread may have a sample at the same
 * address. */
static inline uint32_t kpti_sample_ends(kpti_memory_inside in, uintptr_t address, uint32_t pool)
{
    if (!address) return 0;
    if (!kpti_memory_log_wish(in.log)->sample_bytes) return pool + 1;
    return kpti_sample_may_live(address) ? kpti_sample_remove(address) : 0;
}
/* Removes all live samples. */
void kpti_samples_clear(void);

/* Held around a fork; the child clears the samples. */
void kpti_samples_lock(void);
void kpti_samples_unlock(void);
void kpti_samples_clear_locked(void);

#endif
