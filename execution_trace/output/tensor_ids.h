/* tensor_ids.h: the ids of tensors and storages in the trace, by the host's numbers. Nodes take their ids
 * from the same counter. Id 0 means unset, and 1 is the root. */
#ifndef KPTI_EXECUTION_TRACE_OUTPUT_TENSOR_IDS_H
#define KPTI_EXECUTION_TRACE_OUTPUT_TENSOR_IDS_H

#include "core/base/hash_table.h"

/* Starts as zeroes. */
typedef struct kpti_et_ids {
    kpti_hash_table table;
} kpti_et_ids;

/* Returns the id of KEY in its GENERATION, and takes a new one from *NEXT at its first use. Returns 0 if
 * KEY is 0. If there is no memory, returns 0 and sets *FAILED. */
uint64_t kpti_et_ids_of(kpti_et_ids *ids, const kpti_heap *heap, uint64_t key, uint64_t generation,
                        uint64_t *next, int *failed);
void kpti_et_ids_free(kpti_et_ids *ids, const kpti_heap *heap);

#endif
