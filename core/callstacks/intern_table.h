/* intern_table.h: records of one size that are found by their content and known by a number, once each.
 *
 * A record is copied in and never moved, so that who has a number may read without a lock. The table
 * grows by one bucket at a time: no call takes longer because there are many. All but kpti_pool_at and
 * kpti_pool_end is called under the user's lock.
 *
 *   number 0 is nobody's
 *   a record begins with a uint32_t, which is the pool's own */
#ifndef KPTI_CORE_CALLSTACKS_INTERN_TABLE_H
#define KPTI_CORE_CALLSTACKS_INTERN_TABLE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* The first segment has 2^8 places, and each one more twice as many as the one before. */
enum { KPTI_POOL_FIRST_BITS = 8, KPTI_POOL_SEGMENTS = 24 };

typedef struct kpti_pool {
    uint32_t record_size;
    uint32_t most; /* the largest number */
    uint64_t (*hash)(const void *record);
    int (*same)(const void *record, const void *wanted);
    _Atomic(char *) segments[KPTI_POOL_SEGMENTS];
    _Atomic uint32_t last; /* the largest number that was ever given */
    uint32_t *buckets[KPTI_POOL_SEGMENTS];
    uint32_t bucket_count;
    uint32_t used; /* records that are there */
    uint32_t free; /* removed ones, chained */
    uint64_t bytes;
} kpti_pool;

/* Where number N lies: the segment, and the place in it. */
typedef struct kpti_pool_place {
    uint32_t segment;
    uint32_t index;
} kpti_pool_place;

static inline kpti_pool_place kpti_pool_locate(uint32_t n)
{
    const uint32_t shifted = n + (UINT32_C(1) << KPTI_POOL_FIRST_BITS);
    const uint32_t bits = 31 - (uint32_t)__builtin_clz(shifted);
    return (kpti_pool_place){bits - KPTI_POOL_FIRST_BITS, shifted - (UINT32_C(1) << bits)};
}

/* The record of a number that was given. */
static inline void *kpti_pool_at(kpti_pool *pool, uint32_t number)
{
    const kpti_pool_place place = kpti_pool_locate(number);
    char *segment = atomic_load_explicit(&pool->segments[place.segment], memory_order_acquire);
    return segment + (size_t)place.index * pool->record_size;
}

/* Numbers that are out are below this. */
static inline uint32_t kpti_pool_end(kpti_pool *pool)
{
    return atomic_load_explicit(&pool->last, memory_order_acquire) + 1;
}

/* The number of the record that is the same as WANTED, of hash HASH; 0: there is none. */
uint32_t kpti_pool_find(kpti_pool *pool, const void *wanted, uint64_t hash);
/* Adds a copy of RECORD, which is not there; 0: no memory, or no number left. */
uint32_t kpti_pool_add(kpti_pool *pool, const void *record, uint64_t hash);
/* Takes a record out; its number may be given again. */
void kpti_pool_remove(kpti_pool *pool, uint32_t number);

/* Mixes a number into a hash. */
static inline uint64_t kpti_hash_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

#endif
