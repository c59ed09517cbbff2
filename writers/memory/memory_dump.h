/* memory_dump.h: a history of allocations with all data that the writers of its files need: memory_viz.h,
 * memory_chrome.h, memory_perfetto.h and memory_tables.h. */
#ifndef KPTI_WRITERS_MEMORY_MEMORY_DUMP_H
#define KPTI_WRITERS_MEMORY_MEMORY_DUMP_H

#include "abi/kpt_traceback.h"
#include "writers/memory/memory_history.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A device or kind of memory. A file has a trace and a curve for each. */
typedef struct kpti_memory_device {
    char name[32];
    int32_t type;  /* in Kineto's numbering; 0: CPU memory */
    int32_t index; /* -1: there is only one */
} kpti_memory_device;

/* The host's report about the blocks of a pool. */
typedef struct kpti_memory_origin {
    int is_told; /* 0: nothing reported, the pool is one of Python's domains */
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
    int has_reported; /* at least one pool was reported by a host */
    /* entries that were assigned to the pool of their device, since there were too many pools */
    uint64_t reported_merged;
    /* Resolved stacks: span I of symbols is the stack with the number stacks[I]. stacks is in the order of
     * kpti_memory_by_stack. */
    const uint32_t *stacks;
    uint64_t stack_count;
    const kpt_symbols *symbols;
} kpti_memory_dump;

/* Compares two stack numbers, for qsort and bsearch. */
int kpti_memory_by_stack(const void *a, const void *b);

/* Returns the index of STACK in the dump's stacks + 1, or 0 if it is not there. */
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
