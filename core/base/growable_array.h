/* growable_array.h: arrays that grow with the numbers that come from the other side. */
#ifndef KPTI_CORE_BASE_GROWABLE_ARRAY_H
#define KPTI_CORE_BASE_GROWABLE_ARRAY_H

#include "core/base/allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A number above this is refused instead of believed. */
enum { KPTI_MOST_ITEMS = 1 << 28 };

/* Has *ARRAY, a pointer to items of ITEM_BYTES, reach item NUMBER; new ones are zeroed. KPT_OK,
 * KPT_E_MEMORY or KPT_E_LIMIT, and then nothing has changed. */
kpt_status kpti_table_grow(const kpti_heap *heap, void *array, uint32_t *capacity, uint32_t number,
                           size_t item_bytes);

static inline kpt_status kpti_table_reach(const kpti_heap *heap, void *array, uint32_t *capacity,
                                          uint32_t number, size_t item_bytes)
{
    if (number < *capacity) return KPT_OK;
    return kpti_table_grow(heap, array, capacity, number, item_bytes);
}

#ifdef __cplusplus
}
#endif
#endif
