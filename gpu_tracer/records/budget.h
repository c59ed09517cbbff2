/* budget.h: how much memory a recording may hold, and how much of it was not kept for want of room. */
#ifndef KPTI_GPU_TRACER_RECORDS_BUDGET_H
#define KPTI_GPU_TRACER_RECORDS_BUDGET_H

#include <stdatomic.h>

#include "abi/impl/kpti_impl.h"

typedef struct kpti_gpu_budget {
    const kpti_env *env;
    uint64_t most;
    _Atomic uint64_t held;
    _Atomic uint64_t dropped; /* records, and stacks of records */
} kpti_gpu_budget;

/* Whether BYTES more are within it; they are taken then. Any thread. */
int kpti_budget_take(kpti_gpu_budget *budget, uint64_t bytes);
void kpti_budget_give(kpti_gpu_budget *budget, uint64_t bytes);
/* So many were not kept. Any thread. */
void kpti_budget_drop(kpti_gpu_budget *budget, uint64_t records);

/* Zeroed memory of the host's, within the budget; NULL where there is none. Any thread. */
void *kpti_budget_alloc(kpti_gpu_budget *budget, uint64_t bytes);
void kpti_budget_free(kpti_gpu_budget *budget, void *memory, uint64_t bytes);

#endif
