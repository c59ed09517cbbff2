/* host_heap.h: the host's allocator as a heap, for the growable arrays and hash tables of the plugin and its
 * implementations. */
#ifndef KPTI_CORE_BASE_HOST_HEAP_H
#define KPTI_CORE_BASE_HOST_HEAP_H

#include "abi/impl/kpti_impl.h"
#include "core/base/growable_array.h"

static inline kpti_heap kpti_host_heap(const kpti_env *env)
{
    return (kpti_heap){env->host.ctx, env->host.alloc, env->host.dealloc};
}

/* kpti_array_reserve with the host's allocator. */
static inline int kpti_host_array_reserve(const kpti_env *env, void *array, uint64_t *capacity,
                                          uint64_t needed, size_t item_bytes)
{
    kpti_heap heap;
    if (needed <= *capacity) return 1;
    heap = kpti_host_heap(env);
    return kpti_array_grow(&heap, array, capacity, needed, item_bytes);
}

#endif
