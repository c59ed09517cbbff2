/* memory_dump.h: a history of allocations with everything that the writers of its files need: memory_viz.h,
 * memory_chrome.h, memory_perfetto.h and memory_tables.h. */
#ifndef KPTI_WRITERS_MEMORY_MEMORY_DUMP_H
#define KPTI_WRITERS_MEMORY_MEMORY_DUMP_H

#include "abi/kpt_traceback.h"
#include "writers/memory/memory_history.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where memory is: what a file has a trace and a curve for. */
typedef struct kpti_memory_device {
    char name[32];
    int32_t type;  /* as Kineto numbers them: 0 the processor's memory */
    int32_t index; /* -1: the only one */
} kpti_memory_device;

/* What a host told of the blocks of a pool. */
typedef struct kpti_memory_origin {
    int is_told; /* 0: nothing, it is one of Python's domains */
    uint64_t stream;
    kpt_str category; /* empty: not known */
    kpt_str owner;
} kpti_memory_origin;

typedef struct kpti_memory_dump {
    const kpti_memory_history *history;
    const kpti_memory_device *devices;
    uint32_t device_count;
    const kpti_memory_origin *pools;
    uint32_t pool_count;
    int has_told;         /* a pool is told */
    uint64_t told_merged; /* entries whose pool is their device's, as there were too many */
    /* Stacks in words: span I of symbols is the stack whose number is stacks[I], in the order of
     * kpti_memory_by_stack. */
    const uint32_t *stacks;
    uint64_t stack_count;
    const kpt_symbols *symbols;
} kpti_memory_dump;

/* Compares two numbers of stacks, for qsort and bsearch. */
int kpti_memory_by_stack(const void *a, const void *b);

/* One more than the place of STACK among the dump's; 0: it is not there. */
uint64_t kpti_memory_stack_at(const kpti_memory_dump *dump, uint32_t stack);

static inline const kpt_symbol *kpti_memory_symbol(const kpti_memory_dump *dump, uint64_t symbol)
{
    return (const kpt_symbol *)((const char *)dump->symbols->symbols +
                                symbol * dump->symbols->symbol_stride);
}

#ifdef __cplusplus
}
#endif
#endif
