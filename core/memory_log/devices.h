/* devices.h: the pools of a log as an export needs them: which devices there are, and what the pools
 * are. Python's domains and numpy are the first devices; the others come by type and index. */
#ifndef KPTI_CORE_MEMORY_LOG_DEVICES_H
#define KPTI_CORE_MEMORY_LOG_DEVICES_H

#include "core/memory_log/block_tags.h"
#include "writers/memory/memory_dump.h"

typedef struct kpti_memory_devices {
    kpti_memory_device *devices;
    uint32_t count;
    int has_told;
    struct {
        uint16_t device;
        uint16_t space; /* of addresses: the processor's is 0 */
    } places[KPTI_POOLS];
    kpti_memory_origin pools[KPTI_POOLS]; /* the texts are the log's */
} kpti_memory_devices;

/* Those of POOLS; NULL: no memory. Other threads may add to them meanwhile. */
kpti_memory_devices *kpti_memory_devices_make(kpti_memory_pools *pools);
void kpti_memory_devices_free(kpti_memory_devices *devices);

#endif
