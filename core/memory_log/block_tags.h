/* block_tags.h: what the pool of an event stands for: Python's domains first, then what a host tells: a
 * device, with a stream, a category and an owner, each combination once in a log.
 *
 * Any thread looks them up and adds to them, without a lock: a pool's number is the slot that it was put
 * into by one exchange, and it stays there as long as the log. Where there are too many, a block counts as
 * its device's alone, and then as nobody's. */
#ifndef KPTI_CORE_MEMORY_LOG_BLOCK_TAGS_H
#define KPTI_CORE_MEMORY_LOG_BLOCK_TAGS_H

#include <stdatomic.h>

#include "abi/kpt_memory.h"
#include "core/memory_log/allocation_event.h"

enum {
    KPTI_POOLS = 1 << KPTI_MEMORY_POOL_BITS,
    KPTI_POOLS_TOLD = 3072,  /* those that have all that was told */
    KPTI_POOLS_PLAIN = 4000, /* and those that have the device only */
    KPTI_POOL_TEXT = 255     /* most bytes of a category or an owner: more are cut off */
};

typedef struct kpti_memory_told {
    int32_t device_type;
    int32_t device_index;
    uint64_t stream;
    uint32_t category_size;
    uint32_t owner_size;
    char text[]; /* category and owner */
} kpti_memory_told;

typedef struct kpti_memory_pools {
    _Atomic uint32_t count;
    _Atomic uint32_t other_used; /* KPTI_POOL_OTHER is */
    _Atomic uint64_t merged;     /* events that are not in the pool that they were told for */
    _Atomic(kpti_memory_told *) slots[KPTI_POOLS];
} kpti_memory_pools;

/* The number of REPORT's pool; of a FREE, which is known by its address, its device's. */
uint32_t kpti_memory_pool_of(kpti_memory_pools *pools, const kpt_memory_report *report);
/* None is there any more. Nobody is inside. */
void kpti_memory_pools_clear(kpti_memory_pools *pools);

#endif
