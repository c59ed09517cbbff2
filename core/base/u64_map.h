/* u64_map.h: numbers by number: which flow, which child of a node, which text by its hash. */
#ifndef KPTI_CORE_BASE_U64_MAP_H
#define KPTI_CORE_BASE_U64_MAP_H

#include "core/base/growable_array.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_u64_slot {
    uint64_t key; /* one more than the caller's; 0: empty */
    uint32_t value;
} kpti_u64_slot;

/* Begins as zeroes with a heap. Invariant: at least half of the slots are empty. */
typedef struct kpti_u64_map {
    kpti_heap heap;
    kpti_u64_slot *slots;
    uint32_t capacity; /* 0 or a power of two */
    uint32_t count;
} kpti_u64_map;

/* The value of KEY, 0 when it is new; NULL when there is no memory for it. It is the map's, until
 * the next call. KEY is not UINT64_MAX. */
uint32_t *kpti_u64_map_at(kpti_u64_map *map, uint64_t key);

void kpti_u64_map_free(kpti_u64_map *map);

/* A text as a key: two that differ have the same once in 2^32 texts and more. */
uint64_t kpti_text_key(kpt_str text);

#ifdef __cplusplus
}
#endif
#endif
