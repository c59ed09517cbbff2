/* allocator.h: an allocator as data: the host's (as in kpt_host), malloc, or one with a budget. */
#ifndef KPTI_CORE_BASE_ALLOCATOR_H
#define KPTI_CORE_BASE_ALLOCATOR_H

#include <stdlib.h>
#include <string.h>

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

static const kpti_heap kpti_malloc_heap = {NULL, NULL, NULL};

/* Allocates SIZE bytes, not zeroed. Returns NULL if there is no memory. */
static inline void *kpti_heap_take(const kpti_heap *heap, size_t size)
{
    return heap->alloc ? heap->alloc(heap->ctx, size) : malloc(size);
}

static inline void *kpti_heap_take_zeroed(const kpti_heap *heap, size_t size)
{
    void *memory;
    if (!heap->alloc) return calloc(1, size);
    memory = heap->alloc(heap->ctx, size);
    return memory ? memset(memory, 0, size) : NULL;
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
