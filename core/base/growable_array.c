#include "core/base/growable_array.h"

#include <string.h>

#include "core/base/assert.h"

int kpti_array_grow(const kpti_heap *heap, void *array, uint64_t *capacity, uint64_t needed,
                    size_t item_bytes)
{
    enum { FIRST_BYTES = 1024, MIN_FIRST = 16 };
    uint64_t wanted = *capacity;
    void *grown;
    void *old;
    kpti_assert(item_bytes && needed > *capacity);
    if (needed > SIZE_MAX / 2 / item_bytes) return 0;
    if (!wanted)
        wanted = item_bytes * MIN_FIRST < FIRST_BYTES ? FIRST_BYTES / item_bytes : MIN_FIRST;
    while (wanted < needed)
        wanted *= 2;
    grown = kpti_heap_take_zeroed(heap, (size_t)wanted * item_bytes);
    if (!grown) return 0;
    memcpy(&old, array, sizeof old);
    kpti_assert(!old == !*capacity);
    if (old) memcpy(grown, old, (size_t)*capacity * item_bytes);
    kpti_heap_give(heap, old, (size_t)*capacity * item_bytes);
    memcpy(array, &grown, sizeof grown);
    *capacity = wanted;
    return 1;
}

kpt_status kpti_array_reach_slow(const kpti_heap *heap, void *array, uint32_t *capacity,
                                 uint32_t number, size_t item_bytes)
{
    uint64_t wanted = *capacity;
    if (number >= KPTI_MAX_ITEMS) return KPT_E_LIMIT;
    if (!kpti_array_grow(heap, array, &wanted, (uint64_t)number + 1, item_bytes))
        return KPT_E_MEMORY;
    *capacity = (uint32_t)wanted;
    return KPT_OK;
}
