/* sampled_blocks.h: which allocations are sampled, and which of them live: their frees are recorded, and no
 * others.
 *
 * A byte in sample_bytes is chosen, by chance alone; the block that it lies in is sampled. So a block of
 * SIZE bytes is with a probability of 1 - exp(-SIZE / sample_bytes), and stands for one over that. */
#ifndef KPTI_CORE_MEMORY_LOG_SAMPLED_BLOCKS_H
#define KPTI_CORE_MEMORY_LOG_SAMPLED_BLOCKS_H

#include <stdatomic.h>

#include "core/memory_log/allocation_log.h"

enum { KPTI_SAMPLE_FILTER_BITS = 16 };

/* A bit for each live sample, by its address: most frees end here. */
extern _Atomic uint64_t kpti_sample_filter[(1 << KPTI_SAMPLE_FILTER_BITS) / 64]
    __attribute__((visibility("hidden")));

static inline uint32_t kpti_sample_bit(uintptr_t address)
{
    return (uint32_t)((uint64_t)address * UINT64_C(0x9E3779B97F4A7C15) >>
                      (64 - KPTI_SAMPLE_FILTER_BITS));
}

/* Whether a block may be a live sample. */
static inline int kpti_sample_may_live(uintptr_t address)
{
    const uint32_t bit = kpti_sample_bit(address);
    return atomic_load_explicit(&kpti_sample_filter[bit / 64], memory_order_relaxed) >> bit % 64 &
           1;
}

/* Begins to count, or is at a chosen byte. */
int kpti_sample_takes_slow(kpti_memory_thread *thread, _Atomic uint64_t *until, uint64_t size,
                           uint64_t mean);

/* Passes a block of SIZE bytes by if none of them is chosen: 0 if one may be, or there are more than MOST. Both
 * are asked in one branch. */
static inline int kpti_sample_passes(_Atomic uint64_t *until, uint64_t size, uint64_t most)
{
    const uint64_t left = atomic_load_explicit(until, memory_order_relaxed);
    if (__builtin_expect(!((size <= most) & (size < left)), 0)) return 0;
    atomic_store_explicit(until, left - size, memory_order_relaxed);
    return 1;
}

/* Whether a block of SIZE bytes is sampled, a byte in MEAN. UNTIL is one of the thread's. */
static inline int kpti_sample_takes(kpti_memory_thread *thread, _Atomic uint64_t *until,
                                    uint64_t size, uint64_t mean)
{
    return !kpti_sample_passes(until, size, UINT64_MAX) &&
           kpti_sample_takes_slow(thread, until, size, mean);
}

/* It lives from now on, in POOL; 0: no memory. */
int kpti_sample_add(uintptr_t address, uint32_t pool);
/* It ends: one more than its pool, or 0 if it was none. */
uint32_t kpti_sample_remove(uintptr_t address);

/* Whether a block of SIZE bytes, which begins, is recorded; it is asked once for each. One of less than LEAST
 * is counted with the small ones. */
static inline int kpti_sample_begins(kpti_memory_inside in, uint64_t size, uint64_t least)
{
    const uint64_t mean = kpti_memory_log_wish(in.log)->sample_bytes;
    return !mean ||
           kpti_sample_takes(in.thread,
                             size < least ? &kpti_memory_of_small.until : &kpti_memory_until_sample,
                             size, mean);
}

/* The same of the block at ADDRESS, which is resized in the raw domain: pymalloc may do that, with a block that
 * pymalloc_sampler.h has counted. That is told once, since later the address may be somebody else's. */
static inline int kpti_sample_begins_again(kpti_memory_inside in, uintptr_t address, uint64_t size)
{
    _Atomic uintptr_t *resized = &kpti_memory_of_small.resized;
    if (address && atomic_load_explicit(resized, memory_order_relaxed) == address) {
        atomic_store_explicit(resized, 0, memory_order_relaxed);
        return 0;
    }
    return kpti_sample_begins(in, size, 0);
}

/* Whether it could be added, where only samples are. */
static inline int kpti_sample_lives(kpti_memory_inside in, uintptr_t address, uint32_t pool)
{
    return !kpti_memory_log_wish(in.log)->sample_bytes || kpti_sample_add(address, pool);
}

/* One more than the pool of the block at ADDRESS if its end is recorded, else 0. It is asked while the block is
 * still there: afterwards another thread may have a sample at its address. */
static inline uint32_t kpti_sample_ends(kpti_memory_inside in, uintptr_t address, uint32_t pool)
{
    if (!address) return 0;
    if (!kpti_memory_log_wish(in.log)->sample_bytes) return pool + 1;
    return kpti_sample_may_live(address) ? kpti_sample_remove(address) : 0;
}
/* None lives. */
void kpti_samples_clear(void);

/* Around a fork; in the child none lives. */
void kpti_samples_lock(void);
void kpti_samples_unlock(void);
void kpti_samples_clear_locked(void);

#endif
