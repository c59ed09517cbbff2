/* hash_table.h: a hash table with open addressing and linear probing.
 *
 * The table owns an array of slots. The user's kpti_hash_slots describes a slot: the table does not know keys or
 * values. A slot of zeroes is empty. All functions are inlined with a constant kpti_hash_slots, so that a probe
 * costs what it costs in a table written by hand.
 *
 *   capacity is 0 or a power of two
 *   a used slot is at its hash, modulo the capacity, or behind it without an empty slot in between
 *   at least one slot is empty; after kpti_hash_table_reserve, at least half are */
#ifndef KPTI_CORE_BASE_HASH_TABLE_H
#define KPTI_CORE_BASE_HASH_TABLE_H

#include <string.h>

#include "core/base/allocator.h"
#include "core/base/assert.h"

#define KPTI_HASH_TABLE_INLINE static inline __attribute__((always_inline))

/* Initialized with zeroes. */
typedef struct kpti_hash_table {
    void *slots;
    uint64_t capacity;
    uint64_t count; /* used slots; a caller that fills an empty slot adds 1 */
} kpti_hash_table;

static inline int kpti_hash_table_is_valid(const kpti_hash_table *table)
{
    return kpti_is_power_or_zero(table->capacity) && !table->slots == !table->capacity &&
           (table->capacity ? table->count < table->capacity : !table->count);
}

/* CTX is the pointer that the caller passes with the table. */
typedef struct kpti_hash_slots {
    size_t slot_bytes;
    uint64_t first_capacity; /* a power of two */
    int (*is_used)(const void *slot);
    /* Whether a used slot has KEY. */
    int (*has_key)(const void *slot, const void *key, const void *ctx);
    uint64_t (*hash)(const void *slot, const void *ctx);
} kpti_hash_slots;

KPTI_HASH_TABLE_INLINE void *kpti_hash_table_at(const kpti_hash_table *table,
                                                const kpti_hash_slots *of, uint64_t index)
{
    return (char *)table->slots + (size_t)(index & (table->capacity - 1)) * of->slot_bytes;
}

/* Returns the slot of KEY, whose hash is HASH, or the empty slot where KEY belongs. The table has a capacity. */
KPTI_HASH_TABLE_INLINE void *kpti_hash_table_find(const kpti_hash_table *table,
                                                  const kpti_hash_slots *of, uint64_t hash,
                                                  const void *key, const void *ctx)
{
    kpti_assert(table->capacity && kpti_hash_table_is_valid(table));
    for (;; hash++) {
        void *slot = kpti_hash_table_at(table, of, hash);
        if (!of->is_used(slot) || of->has_key(slot, key, ctx)) return slot;
    }
}

/* Returns the empty slot for a key that is not in the table. */
KPTI_HASH_TABLE_INLINE void *kpti_hash_table_place(const kpti_hash_table *table,
                                                   const kpti_hash_slots *of, uint64_t hash)
{
    kpti_assert(table->capacity && kpti_hash_table_is_valid(table));
    for (;; hash++) {
        void *slot = kpti_hash_table_at(table, of, hash);
        if (!of->is_used(slot)) return slot;
    }
}

/* Makes an empty table. Returns 0 if there is no memory. */
KPTI_HASH_TABLE_INLINE int kpti_hash_table_make(kpti_hash_table *table, const kpti_hash_slots *of,
                                                const kpti_heap *heap, uint64_t capacity)
{
    kpti_assert(capacity && kpti_is_power_or_zero(capacity));
    memset(table, 0, sizeof *table);
    if (capacity > SIZE_MAX / of->slot_bytes) return 0;
    table->slots = kpti_heap_take_zeroed(heap, (size_t)capacity * of->slot_bytes);
    if (!table->slots) return 0;
    table->capacity = capacity;
    return 1;
}

KPTI_HASH_TABLE_INLINE void kpti_hash_table_free(kpti_hash_table *table, const kpti_hash_slots *of,
                                                 const kpti_heap *heap)
{
    kpti_heap_give(heap, table->slots, (size_t)table->capacity * of->slot_bytes);
    memset(table, 0, sizeof *table);
}

/* Doubles the capacity. Returns 0 without changing anything if there is no memory. */
KPTI_HASH_TABLE_INLINE int kpti_hash_table_grow(kpti_hash_table *table, const kpti_hash_slots *of,
                                                const kpti_heap *heap, const void *ctx)
{
    kpti_hash_table larger;
    kpti_assert(kpti_hash_table_is_valid(table));
    if (!kpti_hash_table_make(&larger, of, heap,
                              table->capacity ? table->capacity * 2 : of->first_capacity))
        return 0;
    for (uint64_t i = 0; i < table->capacity; i++) {
        const void *old = kpti_hash_table_at(table, of, i);
        if (of->is_used(old))
            memcpy(kpti_hash_table_place(&larger, of, of->hash(old, ctx)), old, of->slot_bytes);
    }
    larger.count = table->count;
    kpti_hash_table_free(table, of, heap);
    *table = larger;
    return 1;
}

/* Whether the next used slot needs a larger table. */
static inline int kpti_hash_table_is_full(const kpti_hash_table *table)
{
    return table->count * 2 >= table->capacity;
}

/* Makes space for one more key. Returns 0 without changing anything if there is no memory. */
KPTI_HASH_TABLE_INLINE int kpti_hash_table_reserve(kpti_hash_table *table,
                                                   const kpti_hash_slots *of, const kpti_heap *heap,
                                                   const void *ctx)
{
    if (__builtin_expect(!kpti_hash_table_is_full(table), 1)) return 1;
    return kpti_hash_table_grow(table, of, heap, ctx);
}

/* Empties SLOT, which is used, and moves slots behind it up if their probe sequence passes through it. */
KPTI_HASH_TABLE_INLINE void kpti_hash_table_remove(kpti_hash_table *table,
                                                   const kpti_hash_slots *of, void *slot,
                                                   const void *ctx)
{
    const uint64_t mask = table->capacity - 1;
    uint64_t hole = (uint64_t)((char *)slot - (char *)table->slots) / of->slot_bytes;
    kpti_assert(table->count && hole <= mask && of->is_used(slot));
    for (uint64_t i = hole + 1;; i++) {
        const void *next = kpti_hash_table_at(table, of, i);
        if (!of->is_used(next)) break;
        if (((i - of->hash(next, ctx)) & mask) < i - hole) continue;
        memcpy(kpti_hash_table_at(table, of, hole), next, of->slot_bytes);
        hole = i;
    }
    memset(kpti_hash_table_at(table, of, hole), 0, of->slot_bytes);
    table->count--;
    kpti_assert(kpti_hash_table_is_valid(table));
}

#endif
