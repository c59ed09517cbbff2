#include "core/memory_log/sampled_blocks.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "core/base/hash_table.h"
#include "core/base/lock_owner.h"

enum { WORDS = (1 << KPTI_SAMPLE_FILTER_BITS) / 64, STALE = 4096 };

_Atomic uint64_t kpti_sample_filter[WORDS];

typedef struct sample {
    uintptr_t address; /* 0 = empty */
    uint32_t pool;
} sample;

static int is_used(const void *slot)
{
    return ((const sample *)slot)->address != 0;
}

static int has_key(const void *slot, const void *address, const void *ctx)
{
    (void)ctx;
    return ((const sample *)slot)->address == *(const uintptr_t *)address;
}

static uint64_t hash(const void *slot, const void *ctx)
{
    (void)ctx;
    return kpti_hash_spread(((const sample *)slot)->address) >> 24;
}

static const kpti_hash_slots slots = {sizeof(sample), 1024, is_used, has_key, hash};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static kpti_lock_owner lock_owner;
static kpti_hash_table live; /* of samples */
static size_t stale; /* samples removed since the filter was built; their bits may be stale */

static inline int is_valid_locked(void)
{
    return kpti_lock_is_mine(&lock_owner) && kpti_hash_table_is_valid(&live);
}

void kpti_samples_lock(void)
{
    kpti_lock_acquire(&lock, &lock_owner);
}

void kpti_samples_unlock(void)
{
    kpti_lock_release(&lock, &lock_owner);
}

/* xorshift; uses the upper bits, which are the better ones. */
static double chance(kpti_memory_thread *thread)
{
    uint64_t x = thread->random | 1;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    thread->random = x;
    return ((double)(x >> 11) + 0.5) / (double)(UINT64_C(1) << 53);
}

/* Returns the number of bytes up to and including the next chosen one; MEAN on average. */
static uint64_t distance(kpti_memory_thread *thread, uint64_t mean)
{
    const double bytes = ceil(-log(chance(thread)) * (double)mean);
    return bytes < 1 ? 1 : bytes > 1e18 ? (uint64_t)1e18 : (uint64_t)bytes;
}

/* A block that contains the chosen byte is one sample, and counting starts again after the block.
 * The very first block is chosen at random like all others. */
int kpti_sample_takes_slow(kpti_memory_thread *thread, _Atomic uint64_t *until, uint64_t size,
                           uint64_t mean)
{
    uint64_t left = atomic_load_explicit(until, memory_order_relaxed);
    int taken = 1;
    if (!left) {
        left = distance(thread, mean);
        taken = left <= size;
    }
    left = taken ? distance(thread, mean) : left - size;
    atomic_store_explicit(until, left, memory_order_relaxed);
    return taken;
}

/* Returns the slot of the block at ADDRESS, or the empty slot for it. */
static sample *find(uintptr_t address)
{
    const sample wanted = {address, 0};
    return kpti_hash_table_find(&live, &slots, hash(&wanted, NULL), &address, NULL);
}

static void set_bit(uintptr_t address)
{
    const uint32_t bit = kpti_sample_bit(address);
    atomic_fetch_or_explicit(&kpti_sample_filter[bit / 64], UINT64_C(1) << bit % 64,
                             memory_order_relaxed);
}

int kpti_sample_add(uintptr_t address, uint32_t pool)
{
    int added;
    kpti_assert(address); /* 0 marks an empty slot */
    kpti_samples_lock();
    added = kpti_hash_table_reserve(&live, &slots, &kpti_malloc_heap, NULL) ||
            live.count + 1 < live.capacity; /* fuller than usual */
    if (added) {
        sample *found = find(address);
        live.count += !found->address;
        *found = (sample){address, pool};
        set_bit(address);
    }
    kpti_assert(is_valid_locked() && (!added || kpti_sample_may_live(address)));
    kpti_samples_unlock();
    return added;
}

/* Rebuilds the filter from the live samples, whose bits are never seen unset. */
static void renew_filter_locked(void)
{
    static uint64_t fresh[WORDS];
    kpti_assert(kpti_lock_is_mine(&lock_owner));
    memset(fresh, 0, sizeof fresh);
    for (uint64_t i = 0; i < live.capacity; i++) {
        const sample *s = kpti_hash_table_at(&live, &slots, i);
        const uint32_t bit = kpti_sample_bit(s->address);
        if (s->address) fresh[bit / 64] |= UINT64_C(1) << bit % 64;
    }
    for (size_t i = 0; i < WORDS; i++)
        atomic_store_explicit(&kpti_sample_filter[i], fresh[i], memory_order_relaxed);
    stale = 0;
}

uint32_t kpti_sample_remove(uintptr_t address)
{
    uint32_t found = 0;
    kpti_samples_lock();
    if (live.capacity) {
        sample *s = find(address);
        if (s->address) {
            found = s->pool + 1;
            kpti_hash_table_remove(&live, &slots, s, NULL);
            if (++stale >= STALE) renew_filter_locked();
        }
    }
    kpti_assert(is_valid_locked());
    kpti_samples_unlock();
    return found;
}

void kpti_samples_clear_locked(void)
{
    kpti_assert(is_valid_locked());
    kpti_hash_table_free(&live, &slots, &kpti_malloc_heap);
    renew_filter_locked();
}

void kpti_samples_clear(void)
{
    kpti_samples_lock();
    kpti_samples_clear_locked();
    kpti_samples_unlock();
}
