/* host_array.h: arrays that grow, in the memory of the host. */
#ifndef KPTI_CORE_BASE_HOST_ARRAY_H
#define KPTI_CORE_BASE_HOST_ARRAY_H

#include "abi/impl/kpti_impl.h"

/* ARRAY, or a larger one in its place, with room for NEEDED elements of SIZE bytes, 1 at least: the first
 * USED are kept, those behind the old ROOM are zeroes. NULL when there is no memory: nothing has changed. */
static inline void *kpti_array_reserve(const kpti_env *env, void *array, uint64_t *room,
                                       uint64_t used, uint64_t needed, size_t size)
{
    enum { FIRST_BYTES = 1024, LEAST_FIRST = 16 };
    uint64_t wanted = *room;
    void *grown;
    if (needed <= *room) return array;
    if (!wanted) wanted = size * LEAST_FIRST < FIRST_BYTES ? FIRST_BYTES / size : LEAST_FIRST;
    while (wanted < needed)
        wanted *= 2;
    grown = kpti_alloc(env, wanted * size);
    if (!grown) return NULL;
    if (used) memcpy(grown, array, used * size);
    kpti_free(env, array, *room * size);
    *room = wanted;
    return grown;
}

#endif
