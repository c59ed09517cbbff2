#include "core/base/growable_array.h"

#include <string.h>

#include "core/base/assert.h"

enum { FIRST_BYTES = 1024, MIN_FIRST = 16, LARGE_BYTES = 1 << 20 };

/* malloc moves the pages of a large block, so it is not twice in memory. */
static int is_moved(const kpti_heap *heap, uint64_t bytes)
{
    return !heap->alloc && bytes >= LARGE_BYTES;
}

static uint64_t next_capacity(const kpti_heap *heap, uint64_t capacity, uint64_t needed,
                              size_t item_bytes)
{
    uint64_t wanted = capacity;
    if (!wanted)
        wanted = item_bytes * MIN_FIRST < FIRST_BYTES ? FIRST_BYTES / item_bytes : MIN_FIRST;
    while (wanted < needed)
        wanted += is_moved(heap, wanted * item_bytes) ? wanted / 8 : wanted;
    return wanted;
}

/* Returns OLD with more bytes, which are zero, or NULL if there is no memory. */
static void *grow(const kpti_heap *heap, void *old, size_t old_bytes, size_t bytes)
{
    void *grown;
    if (is_moved(heap, old_bytes)) {
        grown = realloc(old, bytes);
        if (grown) memset((char *)grown + old_bytes, 0, bytes - old_bytes);
        return grown;
    }
    grown = kpti_heap_take_zeroed(heap, bytes);
    if (!grown) return NULL;
    if (old) memcpy(grown, old, old_bytes);
    kpti_heap_give(heap, old, old_bytes);
    return grown;
}

int kpti_array_grow(const kpti_heap *heap, void *array, uint64_t *capacity, uint64_t needed,
                    size_t item_bytes)
{
    uint64_t wanted;
    void *grown;
    void *old;
    kpti_assert(item_bytes && needed > *capacity);
    if (needed > SIZE_MAX / 4 / item_bytes) return 0;
    memcpy(&old, array, sizeof old);
    kpti_assert(!old == !*capacity);
    wanted = next_capacity(heap, *capacity, needed, item_bytes);
    grown = grow(heap, old, (size_t)*capacity * item_bytes, (size_t)wanted * item_bytes);
    if (!grown) return 0;
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
