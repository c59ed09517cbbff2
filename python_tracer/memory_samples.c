#include "memory_samples.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = (1 << KPTI_SAMPLE_FILTER_BITS) / 64, FIRST_ROOM = 1024, STALE = 4096 };

_Atomic uint64_t kpti_sample_filter[WORDS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uintptr_t *slots; /* 0: empty, 1: was taken out */
static size_t room;      /* a power of two */
static size_t used;      /* slots that are not empty */
static size_t live;
static size_t stale; /* bits of the filter that may be without one, since it was made */

void kpti_samples_lock(void)
{
    pthread_mutex_lock(&lock);
}

void kpti_samples_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* xorshift; the upper half is the better one. */
static double chance(kpti_memory_thread *thread)
{
    uint64_t x = thread->random | 1;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    thread->random = x;
    return ((double)(x >> 11) + 0.5) / (double)(UINT64_C(1) << 53);
}

/* The bytes to the next chosen one, on the average MEAN. */
static int64_t distance(kpti_memory_thread *thread, uint64_t mean)
{
    const double bytes = ceil(-log(chance(thread)) * (double)mean);
    return bytes < 1 ? 1 : bytes > 1e18 ? (int64_t)1e18 : (int64_t)bytes;
}

int kpti_sample_takes_slow(kpti_memory_thread *thread, uint64_t size, uint64_t mean)
{
    if (thread->sample_mean != mean) { /* its first block is chosen by chance as all others are */
        thread->sample_mean = mean;
        thread->until_sample = distance(thread, mean) - (int64_t)size;
        if (thread->until_sample > 0) return 0;
    }
    thread->until_sample = distance(thread, mean);
    return 1;
}

double kpti_sample_weight(uint64_t size, uint64_t mean)
{
    return mean && size ? 1 / -expm1(-(double)size / (double)mean) : 1;
}

static size_t slot_of(uintptr_t address)
{
    size_t i = (size_t)((uint64_t)address * UINT64_C(0x9E3779B97F4A7C15) >> 24) & (room - 1);
    while (slots[i] && slots[i] != address)
        i = (i + 1) & (room - 1);
    return i;
}

static void set_bit(uintptr_t address)
{
    const uint32_t bit = kpti_sample_bit(address);
    atomic_fetch_or_explicit(&kpti_sample_filter[bit / 64], UINT64_C(1) << bit % 64,
                             memory_order_relaxed);
}

/* Makes the table anew, without what was taken out, with room for one more; 0: no memory. */
static int renew_locked(void)
{
    const size_t before = room;
    uintptr_t *old = slots;
    size_t wanted = room ? room : FIRST_ROOM;
    uintptr_t *made;
    if (live * 4 >= wanted) wanted *= 2;
    made = calloc(wanted, sizeof *made);
    if (!made) return 0;
    slots = made;
    room = wanted;
    used = live;
    for (size_t i = 0; i < before; i++)
        if (old[i] > 1) slots[slot_of(old[i])] = old[i];
    free(old);
    return 1;
}

int kpti_sample_add(uintptr_t address)
{
    int added = 1;
    size_t i;
    kpti_samples_lock();
    if ((used + 1) * 2 > room) added = renew_locked() || (room && used + 1 < room);
    if (added) {
        i = slot_of(address);
        if (!slots[i]) {
            slots[i] = address;
            used++;
            live++;
        }
        set_bit(address);
    }
    kpti_samples_unlock();
    return added;
}

/* The filter again, of those that live: their bits are never seen unset. */
static void renew_filter_locked(void)
{
    static uint64_t fresh[WORDS];
    memset(fresh, 0, sizeof fresh);
    for (size_t i = 0; i < room; i++)
        if (slots[i] > 1)
            fresh[kpti_sample_bit(slots[i]) / 64] |= UINT64_C(1) << kpti_sample_bit(slots[i]) % 64;
    for (size_t i = 0; i < WORDS; i++)
        atomic_store_explicit(&kpti_sample_filter[i], fresh[i], memory_order_relaxed);
    stale = 0;
}

int kpti_sample_remove(uintptr_t address)
{
    int found = 0;
    kpti_samples_lock();
    if (room) {
        const size_t i = slot_of(address);
        found = slots[i] == address;
        if (found) {
            slots[i] = 1;
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
    room = used = live = 0;
    renew_filter_locked();
}

void kpti_samples_clear(void)
{
    kpti_samples_lock();
    kpti_samples_clear_locked();
    kpti_samples_unlock();
}
