/* tensor_ids.h: the numbers that tensors and storages have in the trace, by what the host calls them. Nodes take
 * theirs from the same counter: 0 is unset, 1 the root. */
#ifndef KPTI_EXECUTION_TRACE_OUTPUT_TENSOR_IDS_H
#define KPTI_EXECUTION_TRACE_OUTPUT_TENSOR_IDS_H

#include "core/base/allocator.h"

typedef struct kpti_et_id {
    uint64_t key;
    uint64_t generation;
    uint64_t id; /* 0: this one is empty */
} kpti_et_id;

/* Begins as zeroes. Invariant: at least half of the slots are empty. */
typedef struct kpti_et_ids {
    kpti_et_id *slots;
    uint64_t capacity; /* 0 or a power of two */
    uint64_t count;
} kpti_et_ids;

/* The id of KEY in its GENERATION; a new one is taken from *NEXT. 0 for key 0. No memory: 0 as well, and
 * *FAILED. */
uint64_t kpti_et_ids_of(kpti_et_ids *ids, const kpti_heap *heap, uint64_t key, uint64_t generation,
                        uint64_t *next, int *failed);
void kpti_et_ids_free(kpti_et_ids *ids, const kpti_heap *heap);

#endif
