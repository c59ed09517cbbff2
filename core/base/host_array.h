/* host_array.h: growing arrays in memory of the host's allocator. */
#ifndef KPTI_CORE_BASE_HOST_ARRAY_H
#define KPTI_CORE_BASE_HOST_ARRAY_H

#include "abi/impl/kpti_impl.h"

/* Returns ARRAY, or a larger array that replaces it, with capacity for NEEDED elements of SIZE
 * bytes; NEEDED is at least 1. Keeps the first USED elements; elements after the old capacity *CAPACITY
 * are zero. Returns NULL without changing anything if there is no memory. */
static inline void *kpti_array_reserve(const kpti_env *env, void *array, uint64_t *capacity,
                                       uint64_t used, uint64_t needed, size_t size)
{
    enum { FIRST_BYTES = 1024, MIN_FIRST = 16 };
    uint64_t wanted = *capacity;
    void *grown;
    if (needed <= *capacity) return array;
    if (!wanted) wanted = size * MIN_FIRST < FIRST_BYTES ? FIRST_BYTES / size : MIN_FIRST;
    while (wanted < needed)
        wanted *= 2;
    grown = kpti_alloc(env, wanted * size);
    if (!grown) return NULL;
    if (used) memcpy(grown, array, used * size);
    kpti_free(env, array, *capacity * size);
    *capacity = wanted;
    return grown;
}

#endif
