#include "gpu_tracer/records/budget.h"

#include "core/base/assert.h"

int kpti_budget_take(kpti_gpu_budget *budget, uint64_t bytes)
{
    uint64_t held = atomic_load_explicit(&budget->held, memory_order_relaxed);
    /* Adds only bytes that fit, so that a refused request does not make other requests fail. */
    do {
        if (held > budget->max || bytes > budget->max - held) return 0;
    } while (!atomic_compare_exchange_weak_explicit(&budget->held, &held, held + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return 1;
}

void kpti_budget_drop(kpti_gpu_budget *budget, uint64_t records)
{
    atomic_fetch_add_explicit(&budget->dropped, records, memory_order_relaxed);
}

void kpti_budget_give(kpti_gpu_budget *budget, uint64_t bytes)
{
    uint64_t held = atomic_load_explicit(&budget->held, memory_order_relaxed);
    /* CUPTI may return a buffer of an earlier recording, whose bytes this budget does not include. */
    while (!atomic_compare_exchange_weak_explicit(&budget->held, &held,
                                                  held > bytes ? held - bytes : 0,
                                                  memory_order_relaxed, memory_order_relaxed))
        continue;
}

void *kpti_budget_alloc(kpti_gpu_budget *budget, uint64_t bytes)
{
    void *memory;
    if (!kpti_budget_take(budget, bytes)) return NULL;
    memory = kpti_alloc(budget->env, bytes);
    if (!memory) kpti_budget_give(budget, bytes);
    return memory;
}

void kpti_budget_free(kpti_gpu_budget *budget, void *memory, uint64_t bytes)
{
    if (!memory) return;
    kpti_assert(atomic_load_explicit(&budget->held, memory_order_relaxed) <= budget->max);
    kpti_free(budget->env, memory, bytes);
    kpti_budget_give(budget, bytes);
}

static void *heap_alloc(void *budget, uint64_t bytes)
{
    return kpti_budget_alloc(budget, bytes);
}

static void heap_dealloc(void *budget, void *memory, uint64_t bytes)
{
    kpti_budget_free(budget, memory, bytes);
}

kpti_heap kpti_budget_heap(kpti_gpu_budget *budget)
{
    return (kpti_heap){budget, heap_alloc, heap_dealloc};
}
