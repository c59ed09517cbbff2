/* growable_array.h: arrays that grow. All have one growth rule: the first capacity takes about a KiB, and each
 * further one is twice as large; from a MiB on, of malloc's memory, an eighth larger.
 *
 * A caller has a pointer to the items and a capacity, both zero at first, and frees the items with its heap. */
#ifndef KPTI_CORE_BASE_GROWABLE_ARRAY_H
#define KPTI_CORE_BASE_GROWABLE_ARRAY_H

#include "core/base/allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Indices from this one on are refused, because they cannot be genuine. */
enum { KPTI_MAX_ITEMS = 1 << 28 };

/* The slow path of kpti_array_reserve. NEEDED is larger than the capacity. */
int kpti_array_grow(const kpti_heap *heap, void *array, uint64_t *capacity, uint64_t needed,
                    size_t item_bytes);

/* Grows *ARRAY, a pointer to items of ITEM_BYTES, to at least NEEDED items; new items are zeroed. Returns 1, or 0
 * without changing anything if there is no memory. */
static inline int kpti_array_reserve(const kpti_heap *heap, void *array, uint64_t *capacity,
                                     uint64_t needed, size_t item_bytes)
{
    return needed <= *capacity || kpti_array_grow(heap, array, capacity, needed, item_bytes);
}

/* The slow path of kpti_array_reach. */
kpt_status kpti_array_reach_slow(const kpti_heap *heap, void *array, uint32_t *capacity,
                                 uint32_t number, size_t item_bytes);

/* Grows *ARRAY so that it contains item NUMBER, an index that may be received from the other side. Returns KPT_OK,
 * or KPT_E_MEMORY or KPT_E_LIMIT without changing anything. */
static inline kpt_status kpti_array_reach(const kpti_heap *heap, void *array, uint32_t *capacity,
                                          uint32_t number, size_t item_bytes)
{
    if (number < *capacity) return KPT_OK;
    return kpti_array_reach_slow(heap, array, capacity, number, item_bytes);
}

#ifdef __cplusplus
}
#endif
#endif
