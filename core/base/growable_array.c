#include "core/base/growable_array.h"

#include <string.h>

enum { FIRST_CAPACITY = 64 };

kpt_status kpti_array_grow(const kpti_heap *heap, void *array, uint32_t *capacity, uint32_t number,
                           size_t item_bytes)
{
    uint32_t wanted = *capacity ? *capacity : FIRST_CAPACITY;
    char *grown;
    char *old;
    if (number >= KPTI_MAX_ITEMS) return KPT_E_LIMIT;
    while (wanted <= number)
        wanted *= 2;
    grown = kpti_heap_take(heap, wanted * item_bytes);
    if (!grown) return KPT_E_MEMORY;
    memcpy(&old, array, sizeof old);
    if (old) memcpy(grown, old, *capacity * item_bytes);
    memset(grown + *capacity * item_bytes, 0, (wanted - *capacity) * item_bytes);
    kpti_heap_give(heap, old, *capacity * item_bytes);
    memcpy(array, &grown, sizeof grown);
    *capacity = wanted;
    return KPT_OK;
}
