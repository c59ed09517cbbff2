/* intern_table.h: a table of records of one size. It contains each distinct record once and
 * identifies it by a number.
 *
 * It is not a kpti_hash_table: that one moves its slots when it grows, and readers here take no lock.
 *
 * The table copies a record when it is added and never moves it, so a thread that has a number may
 * read the record without a lock. The table grows by one bucket at a time, so no call takes longer
 * because the table is large. The caller holds its own lock for every function except kpti_intern_table_at
 * and kpti_intern_table_end.
 *
 *   number 0 is never used
 *   a record begins with a uint32_t that belongs to the table */
#ifndef KPTI_CORE_CALLSTACKS_INTERN_TABLE_H
#define KPTI_CORE_CALLSTACKS_INTERN_TABLE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/assert.h"

/* The first segment has 2^8 slots. Each further segment has twice as many as the one before. */
enum { KPTI_INTERN_TABLE_FIRST_BITS = 8, KPTI_INTERN_TABLE_SEGMENTS = 24 };

typedef struct kpti_intern_table {
    uint32_t record_size;
    uint32_t max; /* the largest number allowed */
    uint64_t (*hash)(const void *record);
    int (*same)(const void *record, const void *wanted);
    _Atomic(char *) segments[KPTI_INTERN_TABLE_SEGMENTS];
    _Atomic uint32_t last; /* the largest number ever returned */
    uint32_t *buckets[KPTI_INTERN_TABLE_SEGMENTS];
    uint32_t bucket_count;
    uint32_t used; /* records in the table */
    uint32_t free; /* list of removed records, linked by their chain */
    uint64_t bytes;
} kpti_intern_table;

/* The position of number N: its segment, and its index in the segment. */
typedef struct kpti_intern_position {
    uint32_t segment;
    uint32_t index;
} kpti_intern_position;

static inline kpti_intern_position kpti_intern_table_locate(uint32_t n)
{
    const uint32_t shifted = n + (UINT32_C(1) << KPTI_INTERN_TABLE_FIRST_BITS);
    const uint32_t bits = 31 - (uint32_t)__builtin_clz(shifted);
    return (kpti_intern_position){bits - KPTI_INTERN_TABLE_FIRST_BITS,
                                  shifted - (UINT32_C(1) << bits)};
}

/* Whether the counts are consistent. The caller holds its lock. */
static inline int kpti_intern_table_is_valid(const kpti_intern_table *table)
{
    const uint32_t last = atomic_load_explicit(&table->last, memory_order_relaxed);
    return last <= table->max && table->used <= last && (!table->used || table->bucket_count) &&
           table->free <= last;
}

/* Returns the record with a number that was returned before. */
static inline void *kpti_intern_table_at(kpti_intern_table *table, uint32_t number)
{
    const kpti_intern_position location = kpti_intern_table_locate(number);
    char *segment = atomic_load_explicit(&table->segments[location.segment], memory_order_acquire);
    kpti_assert(number && segment);
    return segment + (size_t)location.index * table->record_size;
}

/* All numbers returned so far are below this. */
static inline uint32_t kpti_intern_table_end(kpti_intern_table *table)
{
    return atomic_load_explicit(&table->last, memory_order_acquire) + 1;
}

/* Returns the number of the record that equals WANTED, whose hash is HASH, or 0 if there is
 * none. */
uint32_t kpti_intern_table_find(kpti_intern_table *table, const void *wanted, uint64_t hash);
/* Adds a copy of RECORD, which must not be in the table. Returns its number, or 0 if there is no
 * memory or no number left. */
uint32_t kpti_intern_table_add(kpti_intern_table *table, const void *record, uint64_t hash);
/* Removes a record. Its number may be used again. */
void kpti_intern_table_remove(kpti_intern_table *table, uint32_t number);

#endif
