/* growable_array.h: arrays that grow to indices received from the other side. */
#ifndef KPTI_CORE_BASE_GROWABLE_ARRAY_H
#define KPTI_CORE_BASE_GROWABLE_ARRAY_H

#include "core/base/allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Indices from this one on are refused, because they cannot be genuine. */
enum { KPTI_MAX_ITEMS = 1 << 28 };

/* Grows *ARRAY, a pointer to items of ITEM_BYTES, so that it contains item NUMBER; new items are
 * zeroed. Returns KPT_OK, or KPT_E_MEMORY or KPT_E_LIMIT without changing anything. */
kpt_status kpti_array_grow(const kpti_heap *heap, void *array, uint32_t *capacity, uint32_t number,
                           size_t item_bytes);

static inline kpt_status kpti_array_reach(const kpti_heap *heap, void *array, uint32_t *capacity,
                                          uint32_t number, size_t item_bytes)
{
    if (number < *capacity) return KPT_OK;
    return kpti_array_grow(heap, array, capacity, number, item_bytes);
}

#ifdef __cplusplus
}
#endif
#endif
