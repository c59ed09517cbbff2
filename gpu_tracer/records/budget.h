/* budget.h: the memory budget of a recording, and the number of records that were dropped for lack of
 * memory. */
#ifndef KPTI_GPU_TRACER_RECORDS_BUDGET_H
#define KPTI_GPU_TRACER_RECORDS_BUDGET_H

#include <stdatomic.h>

#include "abi/impl/kpti_impl.h"
#include "core/base/allocator.h"

typedef struct kpti_gpu_budget {
    const kpti_env *env;
    uint64_t max;
    _Atomic uint64_t held;
    _Atomic uint64_t dropped; /* records, and stacks of records */
} kpti_gpu_budget;

/* Takes BYTES from the budget. Returns 0 if the budget does not have them. Any thread. */
int kpti_budget_take(kpti_gpu_budget *budget, uint64_t bytes);
void kpti_budget_give(kpti_gpu_budget *budget, uint64_t bytes);
/* Counts RECORDS as dropped. Any thread. */
void kpti_budget_drop(kpti_gpu_budget *budget, uint64_t records);

/* Returns zeroed memory from the host's allocator, or NULL if the budget or the memory is exhausted. Any
 * thread. */
void *kpti_budget_alloc(kpti_gpu_budget *budget, uint64_t bytes);
void kpti_budget_free(kpti_gpu_budget *budget, void *memory, uint64_t bytes);
/* Returns the budget's memory as a heap, for hash tables. */
kpti_heap kpti_budget_heap(kpti_gpu_budget *budget);

#endif
