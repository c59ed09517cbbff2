#include "core/base/u64_map.h"

#include <string.h>

#include "core/base/hash.h"

enum { FIRST_CAPACITY = 64 };

/* Returns the slot of KEY, or the empty slot in which KEY would be stored. */
static kpti_u64_slot *find(kpti_u64_slot *slots, uint32_t capacity, uint64_t key)
{
    uint64_t mixed = kpti_hash_spread(key);
    uint32_t at = (uint32_t)(mixed >> 32) & (capacity - 1);
    while (slots[at].key && slots[at].key != key)
        at = (at + 1) & (capacity - 1);
    return &slots[at];
}

static int grow(kpti_u64_map *map)
{
    uint32_t capacity = map->capacity ? map->capacity * 2 : FIRST_CAPACITY;
    kpti_u64_slot *slots;
    if (capacity > KPTI_MAX_ITEMS) return 0;
    slots = kpti_heap_take(&map->heap, capacity * sizeof *slots);
    if (!slots) return 0;
    memset(slots, 0, capacity * sizeof *slots);
    for (uint32_t i = 0; i < map->capacity; i++)
        if (map->slots[i].key) *find(slots, capacity, map->slots[i].key) = map->slots[i];
    kpti_heap_give(&map->heap, map->slots, map->capacity * sizeof *map->slots);
    map->slots = slots;
    map->capacity = capacity;
    return 1;
}

uint32_t *kpti_u64_map_at(kpti_u64_map *map, uint64_t key)
{
    kpti_u64_slot *slot;
    if (map->count >= map->capacity / 2 && !grow(map)) return NULL;
    slot = find(map->slots, map->capacity, key + 1);
    if (!slot->key) {
        slot->key = key + 1;
        map->count++;
    }
    return &slot->value;
}

void kpti_u64_map_free(kpti_u64_map *map)
{
    kpti_heap_give(&map->heap, map->slots, map->capacity * sizeof *map->slots);
    map->slots = NULL;
    map->capacity = map->count = 0;
}

uint64_t kpti_text_key(kpt_str text)
{
    return kpti_hash_bytes(KPTI_HASH_BYTES, text.data, text.size) >> 1;
}
