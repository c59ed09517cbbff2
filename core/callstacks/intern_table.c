#include "core/callstacks/intern_table.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_SIZE = 1 << KPTI_POOL_FIRST_BITS };

static uint32_t *chain_of(kpti_pool *pool, uint32_t number)
{
    return kpti_pool_at(pool, number);
}

/* Returns the bucket of HASH. This is linear hashing: a bucket in the upper half is split off from
 * its counterpart in the lower half when it is added. */
static uint32_t *bucket_of(kpti_pool *pool, uint64_t hash)
{
    const uint32_t half = UINT32_C(1) << (31 - __builtin_clz(pool->bucket_count));
    uint32_t i = (uint32_t)hash & (2 * half - 1);
    kpti_pool_place place;
    if (i >= pool->bucket_count) i &= half - 1;
    place = kpti_pool_locate(i);
    return &pool->buckets[place.segment][place.index];
}

/* Allocates segment I, zeroed. Returns NULL if there is no memory. */
static void *make_segment(kpti_pool *pool, uint32_t i, size_t size)
{
    const size_t count = (size_t)FIRST_SIZE << i;
    void *made = calloc(count, size);
    if (made) pool->bytes += count * size;
    return made;
}

/* Adds a bucket, and distributes the records of the bucket that it is split off from. Returns 0 if
 * there is no memory. */
static int add_bucket(kpti_pool *pool)
{
    const kpti_pool_place place = kpti_pool_locate(pool->bucket_count);
    uint32_t **segment = &pool->buckets[place.segment];
    const uint32_t half = UINT32_C(1) << (31 - __builtin_clz(pool->bucket_count | 1));
    const uint32_t from = pool->bucket_count & (half - 1);
    kpti_pool_place other = kpti_pool_locate(from);
    uint32_t number;
    if (!*segment) *segment = make_segment(pool, place.segment, sizeof(uint32_t));
    if (!*segment) return 0;
    if (pool->bucket_count++ == 0) return 1;
    number = pool->buckets[other.segment][other.index];
    pool->buckets[other.segment][other.index] = 0;
    while (number) {
        uint32_t *chain = chain_of(pool, number);
        uint32_t *bucket = bucket_of(pool, pool->hash(chain));
        const uint32_t next = *chain;
        *chain = *bucket;
        *bucket = number;
        number = next;
    }
    return 1;
}

uint32_t kpti_pool_find(kpti_pool *pool, const void *wanted, uint64_t hash)
{
    uint32_t number = pool->bucket_count ? *bucket_of(pool, hash) : 0;
    while (number && !pool->same(kpti_pool_at(pool, number), wanted))
        number = *chain_of(pool, number);
    return number;
}

/* Returns an unused number with memory for its record, or 0 if there is none. */
static uint32_t take_number(kpti_pool *pool)
{
    uint32_t number = pool->free;
    kpti_pool_place place;
    char *segment;
    if (number) {
        pool->free = *chain_of(pool, number);
        return number;
    }
    number = atomic_load_explicit(&pool->last, memory_order_relaxed);
    if (number >= pool->most) return 0;
    place = kpti_pool_locate(++number);
    segment = atomic_load_explicit(&pool->segments[place.segment], memory_order_relaxed);
    if (segment) return number;
    segment = make_segment(pool, place.segment, pool->record_size);
    if (!segment) return 0;
    atomic_store_explicit(&pool->segments[place.segment], segment, memory_order_release);
    return number;
}

uint32_t kpti_pool_add(kpti_pool *pool, const void *record, uint64_t hash)
{
    uint32_t *bucket;
    uint32_t *chain;
    uint32_t number;
    /* If there is no memory for another bucket, the chains get longer. */
    if (pool->used >= pool->bucket_count && !add_bucket(pool) && !pool->bucket_count) return 0;
    number = take_number(pool);
    if (!number) return 0;
    chain = chain_of(pool, number);
    memcpy(chain, record, pool->record_size);
    bucket = bucket_of(pool, hash);
    *chain = *bucket;
    *bucket = number;
    pool->used++;
    if (number > atomic_load_explicit(&pool->last, memory_order_relaxed))
        atomic_store_explicit(&pool->last, number, memory_order_release);
    return number;
}

void kpti_pool_remove(kpti_pool *pool, uint32_t number)
{
    uint32_t *chain = chain_of(pool, number);
    uint32_t *link = bucket_of(pool, pool->hash(chain));
    while (*link != number)
        link = chain_of(pool, *link);
    *link = *chain;
    *chain = pool->free;
    pool->free = number;
    pool->used--;
}
