/* memory_samples.h: which allocations are sampled, and which of them live: their frees are recorded, and no
 * others.
 *
 * A byte in sample_bytes is chosen, by chance alone; the block that it lies in is sampled. So a block of
 * SIZE bytes is with a probability of 1 - exp(-SIZE / sample_bytes), and stands for one over that. */
#ifndef KPTI_MEMORY_SAMPLES_H
#define KPTI_MEMORY_SAMPLES_H

#include <stdatomic.h>

#include "memory_log.h"

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

/* Begins to count for MEAN, or is at a chosen byte. */
int kpti_sample_takes_slow(kpti_memory_thread *thread, uint64_t size, uint64_t mean);

/* Whether a block of SIZE bytes is sampled. */
static inline int kpti_sample_takes(kpti_memory_thread *thread, uint64_t size, uint64_t mean)
{
    if (__builtin_expect(thread->sample_mean == mean && (thread->until_sample -= (int64_t)size) > 0,
                         1))
        return 0;
    return kpti_sample_takes_slow(thread, size, mean);
}

/* It lives from now on; 0: no memory. */
int kpti_sample_add(uintptr_t address);
/* It ends: 0 if it was none. */
int kpti_sample_remove(uintptr_t address);
/* Whether the block at ADDRESS, which begins or ends, is recorded. The end is asked for while the block is
 * still there: afterwards another thread may have a sample at its address. */
static inline int kpti_sample_begins(kpti_memory_inside in, uintptr_t address, uint64_t size)
{
    const uint64_t mean = kpti_memory_log_wish(in.log)->sample_bytes;
    return !mean || (kpti_sample_takes(in.thread, size, mean) && kpti_sample_add(address));
}

static inline int kpti_sample_ends(kpti_memory_inside in, uintptr_t address)
{
    if (!address || !kpti_memory_log_wish(in.log)->sample_bytes) return address != 0;
    return kpti_sample_may_live(address) && kpti_sample_remove(address);
}

/* None lives. */
void kpti_samples_clear(void);

/* How many blocks a sampled one of SIZE stands for. */
double kpti_sample_weight(uint64_t size, uint64_t mean);

/* Around a fork; in the child none lives. */
void kpti_samples_lock(void);
void kpti_samples_unlock(void);
void kpti_samples_clear_locked(void);

#endif
