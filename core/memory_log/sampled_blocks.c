#include "core/memory_log/sampled_blocks.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = (1 << KPTI_SAMPLE_FILTER_BITS) / 64, FIRST_ROOM = 1024, STALE = 4096 };

_Atomic uint64_t kpti_sample_filter[WORDS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot {
    uintptr_t address; /* 0 = empty, 1 = removed */
    uint32_t pool;
} * slots;
static size_t capacity; /* a power of two */
static size_t used;     /* slots that are not empty, removed ones included */
static size_t live;
static size_t stale; /* samples removed since the filter was built; their bits may be stale */

void kpti_samples_lock(void)
{
    pthread_mutex_lock(&lock);
}

void kpti_samples_unlock(void)
{
    pthread_mutex_unlock(&lock);
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

static size_t slot_of(uintptr_t address)
{
    size_t i = (size_t)((uint64_t)address * UINT64_C(0x9E3779B97F4A7C15) >> 24) & (capacity - 1);
    while (slots[i].address && slots[i].address != address)
        i = (i + 1) & (capacity - 1);
    return i;
}

static void set_bit(uintptr_t address)
{
    const uint32_t bit = kpti_sample_bit(address);
    atomic_fetch_or_explicit(&kpti_sample_filter[bit / 64], UINT64_C(1) << bit % 64,
                             memory_order_relaxed);
}

/* Rebuilds the table without removed slots and with room for one more. Returns 0 if there is no
 * memory. */
static int renew_locked(void)
{
    const size_t before = capacity;
    struct slot *old = slots;
    size_t wanted = capacity ? capacity : FIRST_ROOM;
    struct slot *made;
    if (live * 4 >= wanted) wanted *= 2;
    made = calloc(wanted, sizeof *made);
    if (!made) return 0;
    slots = made;
    capacity = wanted;
    used = live;
    for (size_t i = 0; i < before; i++)
        if (old[i].address > 1) slots[slot_of(old[i].address)] = old[i];
    free(old);
    return 1;
}

int kpti_sample_add(uintptr_t address, uint32_t pool)
{
    int added = 1;
    size_t i;
    kpti_samples_lock();
    if ((used + 1) * 2 > capacity) added = renew_locked() || (capacity && used + 1 < capacity);
    if (added) {
        i = slot_of(address);
        if (!slots[i].address) {
            used++;
            live++;
        }
        slots[i] = (struct slot){address, pool};
        set_bit(address);
    }
    kpti_samples_unlock();
    return added;
}

/* Rebuilds the filter from the live samples, whose bits are never seen unset. */
static void renew_filter_locked(void)
{
    static uint64_t fresh[WORDS];
    memset(fresh, 0, sizeof fresh);
    for (size_t i = 0; i < capacity; i++)
        if (slots[i].address > 1) {
            const uint32_t bit = kpti_sample_bit(slots[i].address);
            fresh[bit / 64] |= UINT64_C(1) << bit % 64;
        }
    for (size_t i = 0; i < WORDS; i++)
        atomic_store_explicit(&kpti_sample_filter[i], fresh[i], memory_order_relaxed);
    stale = 0;
}

uint32_t kpti_sample_remove(uintptr_t address)
{
    uint32_t found = 0;
    kpti_samples_lock();
    if (capacity) {
        const size_t i = slot_of(address);
        if (slots[i].address == address) {
            found = slots[i].pool + 1;
            slots[i].address = 1;
            live--;
            if (++stale >= STALE) renew_filter_locked();
        }
    }
    kpti_samples_unlock();
    return found;
}

void kpti_samples_clear_locked(void)
{
    free(slots);
    slots = NULL;
    capacity = used = live = 0;
    renew_filter_locked();
}

void kpti_samples_clear(void)
{
    kpti_samples_lock();
    kpti_samples_clear_locked();
    kpti_samples_unlock();
}
