#include "core/base/u64_map.h"

#include "core/base/hash.h"

typedef struct slot {
    uint64_t key; /* the caller's key plus one; 0 = empty */
    uint32_t value;
} slot;

static int is_used(const void *s)
{
    return ((const slot *)s)->key != 0;
}

static int has_key(const void *s, const void *key, const void *ctx)
{
    (void)ctx;
    return ((const slot *)s)->key == *(const uint64_t *)key;
}

static uint64_t hash(const void *s, const void *ctx)
{
    (void)ctx;
    return kpti_hash_spread(((const slot *)s)->key) >> 32;
}

static const kpti_hash_slots slots = {sizeof(slot), 64, is_used, has_key, hash};

/* Not inlined, so that the usual path saves no registers for it. */
static __attribute__((noinline)) int grow(kpti_u64_map *map)
{
    return map->table.count < KPTI_MAX_ITEMS / 2 &&
           kpti_hash_table_grow(&map->table, &slots, &map->heap, NULL);
}

uint32_t *kpti_u64_map_at(kpti_u64_map *map, uint64_t key)
{
    const slot wanted = {key + 1, 0};
    slot *found;
    kpti_assert(wanted.key); /* 0 marks an empty slot */
    if (kpti_hash_table_is_full(&map->table) && !grow(map)) return NULL;
    found = kpti_hash_table_find(&map->table, &slots, hash(&wanted, NULL), &wanted.key, NULL);
    if (!found->key) {
        *found = wanted;
        map->table.count++;
    }
    return &found->value;
}

void kpti_u64_map_free(kpti_u64_map *map)
{
    kpti_hash_table_free(&map->table, &slots, &map->heap);
}

uint64_t kpti_text_key(kpt_str text)
{
    return kpti_hash_bytes(KPTI_HASH_BYTES, text.data, text.size) >> 1;
}
