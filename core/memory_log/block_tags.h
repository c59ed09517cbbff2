/* block_tags.h: the meaning of an event's pool. Python's domains are the first pools. The others
 * are tags from a host's reports: a device with a stream, a category and an owner. A log contains
 * each combination once.
 *
 * Any thread looks pools up and adds them, without a lock. A pool's number is the slot into which
 * one compare-and-exchange put it, and stays valid as long as the log. A kpti_hash_table would need
 * a lock and moves its slots. If there are too many pools,
 * a block is put into the pool of its device alone, and if there are too many of those, into
 * KPTI_POOL_OTHER. */
#ifndef KPTI_CORE_MEMORY_LOG_BLOCK_TAGS_H
#define KPTI_CORE_MEMORY_LOG_BLOCK_TAGS_H

#include <stdatomic.h>

#include "abi/kpt_memory.h"
#include "core/memory_log/allocation_event.h"

enum {
    KPTI_POOLS = 1 << KPTI_MEMORY_POOL_BITS,
    KPTI_POOLS_REPORTED = 3072, /* limit for pools with all the reported tags */
    KPTI_POOLS_PLAIN = 4000,    /* limit including pools with the device only */
    KPTI_POOL_TEXT = 255        /* maximum bytes of a category or an owner; more are cut off */
};

typedef struct kpti_block_tags {
    int32_t device_type;
    int32_t device_index;
    uint64_t stream;
    uint32_t category_size;
    uint32_t owner_size;
    char text[]; /* category, then owner */
} kpti_block_tags;

typedef struct kpti_memory_pools {
    _Atomic uint32_t count;
    _Atomic uint32_t other_used; /* whether KPTI_POOL_OTHER is in use */
    _Atomic uint64_t merged;     /* allocations not in the pool that their report describes */
    _Atomic(kpti_block_tags *) slots[KPTI_POOLS];
} kpti_memory_pools;

/* Returns the number of REPORT's pool. A FREE is identified by its address, so its pool is that of
 * its device. */
uint32_t kpti_memory_pool_of(kpti_memory_pools *pools, const kpt_memory_report *report);
/* Removes all pools. No other thread may be using them. */
void kpti_memory_pools_clear(kpti_memory_pools *pools);

#endif
