/* memory_viz.h: a history of allocations as a snapshot that torch's memory viewer opens, and its commands
 * read: a pickle with a trace for each pool, as for a device, and segments with what was alive at the end.
 * docs/memory.md has the format. */
#ifndef KPTI_MEMORY_VIZ_H
#define KPTI_MEMORY_VIZ_H

#include "kpt_traceback.h"
#include "memory_history.h"
#include "out_file.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_memory_viz {
    const kpti_memory_history *history;
    const kpti_clock *clock;
    uint64_t sample_bytes;
    const char *const *pools; /* their names */
    uint32_t pool_count;
    /* Stacks in words: span I of symbols is the stack whose number is stacks[I], in rising order. */
    const uint32_t *stacks;
    uint64_t stack_count;
    const kpt_symbols *symbols;
} kpti_memory_viz;

/* Writes it all; 0: no memory. Errors of the file are the file's. */
int kpti_memory_viz_write(const kpti_memory_viz *viz, kpti_out_file *out);

#ifdef __cplusplus
}
#endif
#endif
