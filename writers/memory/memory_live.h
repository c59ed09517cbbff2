/* memory_live.h: the blocks that are alive while a recording is read. A block takes 24 bytes, and 5 to 16 of a hash table. */
#ifndef KPTI_WRITERS_MEMORY_MEMORY_LIVE_H
#define KPTI_WRITERS_MEMORY_MEMORY_LIVE_H

#include "core/base/hash_table.h"
#include "writers/memory/memory_codec.h"
#include "writers/memory/memory_names.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_memory_block {
    uint64_t address;
    uint64_t what; /* size and pool */
    uint32_t stack;
    uint32_t number; /* of the allocation; the highest one is the newest of nearly 2^32 */
} kpti_memory_block;

static inline uint64_t kpti_memory_block_size(const kpti_memory_block *block)
{
    return block->what >> 16;
}

static inline uint32_t kpti_memory_block_pool(const kpti_memory_block *block)
{
    return (uint32_t)block->what & 0xFFFF;
}

enum { KPTI_MEMORY_PAGE = 1 << 16 }; /* blocks */

/* Initialized with zeroes and the pools. */
typedef struct kpti_memory_live {
    const kpti_pool_tags *pools;
    kpti_memory_block **pages;
    uint64_t page_capacity;
    uint32_t used; /* blocks that were ever used */
    uint32_t free; /* index + 1 of a block that is free; its number is that of the next one */
    kpti_hash_table table; /* index + 1 of a block */
} kpti_memory_live;

static inline kpti_memory_block *kpti_memory_live_at(const kpti_memory_live *live, uint32_t index)
{
    return &live->pages[index / KPTI_MEMORY_PAGE][index % KPTI_MEMORY_PAGE];
}

/* Adds a block. If there is one at its place, whose free was lost, that one ends, *ENDED receives it, and the call returns
 * 1. Otherwise returns 0, or -1 if there is no memory. */
int kpti_memory_live_add(kpti_memory_live *live, const kpti_memory_block *block,
                         kpti_memory_block *ended);
/* Removes the block at ADDRESS in the address space of POOL. Returns 1, or 0 if there is none. *ENDED receives it. */
int kpti_memory_live_remove(kpti_memory_live *live, uint64_t address, uint32_t pool,
                            kpti_memory_block *ended);

/* Ends the collection: lists the blocks that are alive by address space and address, without those that a newer one
 * overlaps. Their indices are in *INDICES, which belongs to LIVE. Returns how many there are. */
uint32_t kpti_memory_live_list(kpti_memory_live *live, uint32_t **indices);

void kpti_memory_live_free(kpti_memory_live *live);

#ifdef __cplusplus
}
#endif
#endif
