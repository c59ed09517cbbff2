/* allocation_event.h: the record of an allocation, 24 bytes.
 *
 *  - ticks is the low half of the counter. A TIME event has the whole counter, and is written
 *    wherever the upper half has changed.
 *  - A resized block is recorded as a FREE and an ALLOC with RESIZED, even if the block did not
 *    move.
 *  - The size of a FREE is 0: it frees the block that was allocated at its address. */
#ifndef KPTI_CORE_MEMORY_LOG_ALLOCATION_EVENT_H
#define KPTI_CORE_MEMORY_LOG_ALLOCATION_EVENT_H

#include "core/base/assert.h"
#include "writers/memory/memory_codec.h"

typedef struct kpti_memory_event {
    uint64_t address; /* in a TIME event: the whole counter */
    uint64_t what;    /* size, pool and kind */
    uint32_t ticks;
    uint32_t stack; /* in stack_trie.h; 0 = none */
} kpti_memory_event;

/* In addition to the kinds of memory_codec.h. */
enum { KPTI_MEMORY_TIME = 0 };
enum { KPTI_MEMORY_KIND_BITS = 4, KPTI_MEMORY_POOL_BITS = 12 };
enum { KPTI_MEMORY_SIZE_SHIFT = KPTI_MEMORY_KIND_BITS + KPTI_MEMORY_POOL_BITS };

/* The pools: Python's three domains, numpy's data, and blocks for which no pool was left. The pools
 * of block_tags.h follow. */
enum {
    KPTI_POOL_RAW = 0,
    KPTI_POOL_MEM = 1,
    KPTI_POOL_OBJ = 2,
    KPTI_POOL_NUMPY = 3,
    KPTI_POOL_OTHER = 4,
    KPTI_POOLS_OWN = 5
};

#define KPTI_MEMORY_MAX_SIZE ((UINT64_C(1) << (64 - KPTI_MEMORY_SIZE_SHIFT)) - 1)

static inline uint64_t kpti_memory_what(uint32_t kind, uint32_t pool, uint64_t size)
{
    kpti_assert(kind < 1u << KPTI_MEMORY_KIND_BITS && pool < 1u << KPTI_MEMORY_POOL_BITS);
    if (size > KPTI_MEMORY_MAX_SIZE) size = KPTI_MEMORY_MAX_SIZE;
    return size << KPTI_MEMORY_SIZE_SHIFT | (uint64_t)pool << KPTI_MEMORY_KIND_BITS | kind;
}

static inline uint32_t kpti_memory_kind(const kpti_memory_event *e)
{
    return (uint32_t)e->what & ((1u << KPTI_MEMORY_KIND_BITS) - 1);
}

static inline uint32_t kpti_memory_pool(const kpti_memory_event *e)
{
    return (uint32_t)(e->what >> KPTI_MEMORY_KIND_BITS) & ((1u << KPTI_MEMORY_POOL_BITS) - 1);
}

static inline uint64_t kpti_memory_size(const kpti_memory_event *e)
{
    return e->what >> KPTI_MEMORY_SIZE_SHIFT;
}

#endif
