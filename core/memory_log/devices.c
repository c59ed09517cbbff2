#include "core/memory_log/devices.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const domains[] = {"python raw", "python mem", "python object", "numpy"};
enum { DOMAINS = sizeof domains / sizeof *domains };

static const char *const types[] = {"cpu", "cuda"}; /* other types are named by their number */
enum { TYPES = sizeof types / sizeof *types };

static void name(kpti_memory_device *device)
{
    char type[16];
    if (device->type >= 0 && device->type < TYPES)
        (void)snprintf(type, sizeof type, "%s", types[device->type]);
    else
        (void)snprintf(type, sizeof type, "device %d", device->type);
    if (device->index < 0)
        (void)snprintf(device->name, sizeof device->name, "%s", type);
    else
        (void)snprintf(device->name, sizeof device->name, "%s:%d", type, device->index);
}

static int by_number(const void *a, const void *b)
{
    const kpti_memory_device *x = a;
    const kpti_memory_device *y = b;
    if (x->type != y->type) return x->type < y->type ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static kpti_memory_device *find(const kpti_memory_devices *d, const kpti_block_tags *tags)
{
    const kpti_memory_device wanted = {"", tags->device_type, tags->device_index};
    return bsearch(&wanted, d->devices + DOMAINS, d->count - DOMAINS, sizeof wanted, by_number);
}

/* Adds each reported device once. SEEN is a snapshot of the pools. */
static void list_tags(kpti_memory_devices *d, kpti_block_tags *const *seen)
{
    uint32_t kept = DOMAINS;
    for (uint32_t i = KPTI_POOLS_OWN; i < KPTI_POOLS; i++)
        if (seen[i])
            d->devices[d->count++] =
                (kpti_memory_device){"", seen[i]->device_type, seen[i]->device_index};
    if (d->count > kept) qsort(d->devices + kept, d->count - kept, sizeof *d->devices, by_number);
    for (uint32_t i = DOMAINS; i < d->count; i++)
        if (kept == DOMAINS || by_number(&d->devices[kept - 1], &d->devices[i]) != 0)
            d->devices[kept++] = d->devices[i];
    d->count = kept;
    for (uint32_t i = DOMAINS; i < d->count; i++)
        name(&d->devices[i]);
}

static void describe_pool(kpti_memory_devices *d, uint32_t pool, const kpti_block_tags *tags)
{
    const uint32_t device = (uint32_t)(find(d, tags) - d->devices);
    d->has_reported = 1;
    d->pool_devices[pool].device = (uint16_t)device;
    d->pool_devices[pool].space = (uint16_t)(tags->device_type ? device : 0);
    d->pools[pool] = (kpti_memory_origin){
        1,
        tags->stream,
        {tags->text, tags->category_size},
        {tags->text + tags->category_size, tags->owner_size},
    };
}

/* Adds the device of blocks whose device is unknown. */
static void add_other_device(kpti_memory_devices *d)
{
    d->pool_devices[KPTI_POOL_OTHER].device = d->pool_devices[KPTI_POOL_OTHER].space =
        (uint16_t)d->count;
    d->devices[d->count++] = (kpti_memory_device){"other", -1, -1};
}

kpti_memory_devices *kpti_memory_devices_make(kpti_memory_pools *pools)
{
    kpti_memory_devices *d = calloc(1, sizeof *d);
    kpti_block_tags **seen = malloc(KPTI_POOLS * sizeof *seen);
    kpti_memory_device *devices = calloc(KPTI_POOLS, sizeof *devices);
    if (!d || !seen || !devices) {
        free(d);
        free(seen);
        free(devices);
        return NULL;
    }
    for (uint32_t i = 0; i < KPTI_POOLS; i++)
        seen[i] = atomic_load_explicit(&pools->slots[i], memory_order_acquire);
    d->devices = devices;
    for (; d->count < DOMAINS; d->count++) {
        devices[d->count].index = -1;
        (void)snprintf(devices[d->count].name, sizeof devices->name, "%s", domains[d->count]);
        d->pool_devices[d->count].device = (uint16_t)d->count;
    }
    list_tags(d, seen);
    for (uint32_t i = KPTI_POOLS_OWN; i < KPTI_POOLS; i++)
        if (seen[i]) describe_pool(d, i, seen[i]);
    if (atomic_load_explicit(&pools->other_used, memory_order_relaxed)) add_other_device(d);
    free(seen);
    return d;
}

void kpti_memory_devices_free(kpti_memory_devices *devices)
{
    if (!devices) return;
    free(devices->devices);
    free(devices);
}
