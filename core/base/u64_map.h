/* u64_map.h: a map from 64-bit keys to numbers, such as flows, children of a node, or texts by
 * hash. */
#ifndef KPTI_CORE_BASE_U64_MAP_H
#define KPTI_CORE_BASE_U64_MAP_H

#include "core/base/growable_array.h"
#include "core/base/hash_table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Initialized with zeroes and a heap. */
typedef struct kpti_u64_map {
    kpti_heap heap;
    kpti_hash_table table;
} kpti_u64_map;

/* Returns a pointer to the value of KEY, which is 0 if the key is new, or NULL if there is no
 * memory. The pointer belongs to the map and is valid until the next call. KEY must not be
 * UINT64_MAX. */
uint32_t *kpti_u64_map_at(kpti_u64_map *map, uint64_t key);

void kpti_u64_map_free(kpti_u64_map *map);

/* Hashes a text to a key. Two different texts have the same key at most once in 2^32 texts. */
uint64_t kpti_text_key(kpt_str text);

#ifdef __cplusplus
}
#endif
#endif
