/* allocator.h: the allocator of the writers and of the execution trace: the host's allocator (as in
 * kpt_host), or malloc. */
#ifndef KPTI_CORE_BASE_ALLOCATOR_H
#define KPTI_CORE_BASE_ALLOCATOR_H

#include <stdlib.h>

#include "abi/kpt_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All zero selects malloc. */
typedef struct kpti_heap {
    void *ctx;
    void *(*alloc)(void *ctx, uint64_t size);
    void (*dealloc)(void *ctx, void *memory, uint64_t size);
} kpti_heap;

/* Allocates SIZE bytes, not zeroed. Returns NULL if there is no memory. */
static inline void *kpti_heap_take(const kpti_heap *heap, size_t size)
{
    return heap->alloc ? heap->alloc(heap->ctx, size) : malloc(size);
}

static inline void kpti_heap_give(const kpti_heap *heap, void *memory, size_t size)
{
    if (!memory) return;
    if (heap->dealloc)
        heap->dealloc(heap->ctx, memory, size);
    else
        free(memory);
}

#ifdef __cplusplus
}
#endif
#endif
