/* memory_dump.h: a history of allocations with all that its files need, and the files. Each writes it all and
 * answers 1, or 0 where there was no memory; errors of the file are the file's. */
#ifndef KPTI_MEMORY_DUMP_H
#define KPTI_MEMORY_DUMP_H

#include "kpt_traceback.h"
#include "memory_history.h"
#include "out_file.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_memory_dump {
    const kpti_memory_history *history;
    uint64_t sample_bytes;
    const char *const *pools; /* their names */
    uint32_t pool_count;
    /* Stacks in words: span I of symbols is the stack whose number is stacks[I], in the order of
     * kpti_memory_by_stack. */
    const uint32_t *stacks;
    uint64_t stack_count;
    const kpt_symbols *symbols;
} kpti_memory_dump;

/* Compares two numbers of stacks, for qsort and bsearch. */
int kpti_memory_by_stack(const void *a, const void *b);

/* A snapshot that torch's memory viewer opens, and its commands read: a pickle with a trace for each pool, as
 * for a device, and segments with what was alive at the end. */
int kpti_memory_viz_write(const kpti_memory_dump *dump, kpti_out_file *out);

/* Chrome JSON: an instant [memory] for each allocation and free, as Kineto has them, and a counter for each
 * pool. */
int kpti_memory_chrome_write(const kpti_memory_dump *dump, kpti_out_file *out);

/* The same for Perfetto, with the place in the source. */
int kpti_memory_perfetto_write(const kpti_memory_dump *dump, kpti_out_file *out);

/* What each stack had allocated at the peak, at the end and in all, as JSON: one row for each, however many
 * entries there are. */
int kpti_memory_tables_write(const kpti_memory_dump *dump, kpti_out_file *out);

#ifdef __cplusplus
}
#endif
#endif
