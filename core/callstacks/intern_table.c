#include "core/callstacks/intern_table.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"

enum { FIRST_SIZE = 1 << KPTI_INTERN_TABLE_FIRST_BITS };

static uint32_t *chain_of(kpti_intern_table *table, uint32_t number)
{
    return kpti_intern_table_at(table, number);
}

/* Returns the bucket of HASH. This is linear hashing: a bucket in the upper half is split off from
 * its counterpart in the lower half when it is added. */
static uint32_t *bucket_of(kpti_intern_table *table, uint64_t hash)
{
    const uint32_t half = UINT32_C(1) << (31 - __builtin_clz(table->bucket_count));
    uint32_t i = (uint32_t)hash & (2 * half - 1);
    kpti_intern_position location;
    kpti_assert(table->bucket_count); /* else clz has no result */
    if (i >= table->bucket_count) i &= half - 1;
    location = kpti_intern_table_locate(i);
    return &table->buckets[location.segment][location.index];
}

/* Allocates segment I, zeroed. Returns NULL if there is no memory. */
static void *make_segment(kpti_intern_table *table, uint32_t i, size_t size)
{
    const size_t count = (size_t)FIRST_SIZE << i;
    void *made = calloc(count, size);
    if (made) table->bytes += count * size;
    return made;
}

/* Adds a bucket, and distributes the records of the bucket that it is split off from. Returns 0 if
 * there is no memory. */
static int add_bucket(kpti_intern_table *table)
{
    const kpti_intern_position location = kpti_intern_table_locate(table->bucket_count);
    uint32_t **segment = &table->buckets[location.segment];
    const uint32_t half = UINT32_C(1) << (31 - __builtin_clz(table->bucket_count | 1));
    const uint32_t from = table->bucket_count & (half - 1);
    kpti_intern_position other = kpti_intern_table_locate(from);
    uint32_t number;
    if (!*segment) *segment = make_segment(table, location.segment, sizeof(uint32_t));
    if (!*segment) return 0;
    if (table->bucket_count++ == 0) return 1;
    number = table->buckets[other.segment][other.index];
    table->buckets[other.segment][other.index] = 0;
    while (number) {
        uint32_t *chain = chain_of(table, number);
        uint32_t *bucket = bucket_of(table, table->hash(chain));
        const uint32_t next = *chain;
        *chain = *bucket;
        *bucket = number;
        number = next;
    }
    return 1;
}

uint32_t kpti_intern_table_find(kpti_intern_table *table, const void *wanted, uint64_t hash)
{
    uint32_t number = table->bucket_count ? *bucket_of(table, hash) : 0;
    while (number && !table->same(kpti_intern_table_at(table, number), wanted))
        number = *chain_of(table, number);
    return number;
}

/* Returns an unused number with memory for its record, or 0 if there is none. */
static uint32_t take_number(kpti_intern_table *table)
{
    uint32_t number = table->free;
    kpti_intern_position location;
    char *segment;
    if (number) {
        table->free = *chain_of(table, number);
        return number;
    }
    number = atomic_load_explicit(&table->last, memory_order_relaxed);
    if (number >= table->max) return 0;
    location = kpti_intern_table_locate(++number);
    segment = atomic_load_explicit(&table->segments[location.segment], memory_order_relaxed);
    if (segment) return number;
    segment = make_segment(table, location.segment, table->record_size);
    if (!segment) return 0;
    atomic_store_explicit(&table->segments[location.segment], segment, memory_order_release);
    return number;
}

uint32_t kpti_intern_table_add(kpti_intern_table *table, const void *record, uint64_t hash)
{
    uint32_t *bucket;
    uint32_t *chain;
    uint32_t number;
    kpti_assert(table->hash(record) == hash && !kpti_intern_table_find(table, record, hash));
    /* If there is no memory for another bucket, the chains get longer. */
    if (table->used >= table->bucket_count && !add_bucket(table) && !table->bucket_count) return 0;
    number = take_number(table);
    if (!number) return 0;
    chain = chain_of(table, number);
    memcpy(chain, record, table->record_size);
    bucket = bucket_of(table, hash);
    *chain = *bucket;
    *bucket = number;
    table->used++;
    if (number > atomic_load_explicit(&table->last, memory_order_relaxed))
        atomic_store_explicit(&table->last, number, memory_order_release);
    kpti_assert(kpti_intern_table_is_valid(table));
    return number;
}

void kpti_intern_table_remove(kpti_intern_table *table, uint32_t number)
{
    uint32_t *chain = chain_of(table, number);
    uint32_t *link = bucket_of(table, table->hash(chain));
    while (*link != number)
        link = chain_of(table, *link); /* asserts that the chain does not end before NUMBER */
    *link = *chain;
    *chain = table->free;
    table->free = number;
    table->used--;
    kpti_assert(kpti_intern_table_is_valid(table));
}
