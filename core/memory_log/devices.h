/* devices.h: the pools of a log in the form that an export needs: the list of devices, and the
 * description of each pool. Python's domains and numpy are the first devices; the others follow by
 * type and index. */
#ifndef KPTI_CORE_MEMORY_LOG_DEVICES_H
#define KPTI_CORE_MEMORY_LOG_DEVICES_H

#include "core/memory_log/block_tags.h"
#include "writers/memory/memory_dump.h"

typedef struct kpti_memory_devices {
    kpti_memory_device *devices;
    uint32_t count;
    int has_reported;
    struct {
        uint16_t device;
        uint16_t space;                   /* address space: host memory is 0 */
    } pool_devices[KPTI_POOLS];           /* by pool */
    kpti_memory_origin pools[KPTI_POOLS]; /* the log owns the strings */
} kpti_memory_devices;

/* Lists the devices of POOLS. Returns NULL if there is no memory. Other threads may add pools
 * meanwhile. */
kpti_memory_devices *kpti_memory_devices_make(kpti_memory_pools *pools);
void kpti_memory_devices_free(kpti_memory_devices *devices);

#endif
