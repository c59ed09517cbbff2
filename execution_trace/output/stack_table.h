/* stack_table.h: the Python stacks of a trace: frames, each once, and stacks, each a frame on top of
 * another stack. The numbers of the recording process become indices, in the order of their first use. */
#ifndef KPTI_EXECUTION_TRACE_OUTPUT_STACK_TABLE_H
#define KPTI_EXECUTION_TRACE_OUTPUT_STACK_TABLE_H

#include "core/base/u64_map.h"
#include "execution_trace/output/journal_text.h"

/* Each is the index + 1, or 0 if there is none or the journal does not have it. */
typedef struct kpti_et_stack_row {
    uint32_t below;
    uint32_t frame;
} kpti_et_stack_row;

/* Starts as zeroes; then call init. */
typedef struct kpti_et_stack_table {
    const kpti_heap *heap;
    kpti_u64_map locations; /* values are the index + 1 */
    kpti_u64_map stacks;
    kpti_et_text frames; /* as JSON, as in the file */
    uint32_t frame_count;
    kpti_et_stack_row *rows;
    uint32_t row_capacity;
    uint32_t row_count;
    int failed;
} kpti_et_stack_table;

void kpti_et_stack_table_init(kpti_et_stack_table *t, const kpti_heap *heap);
void kpti_et_stack_table_free(kpti_et_stack_table *t);
void kpti_et_stack_table_place(kpti_et_stack_table *t, const kpti_et_item *item);
void kpti_et_stack_table_stack(kpti_et_stack_table *t, const kpti_et_item *item);
/* Returns the index of STACK + 1, or 0 if STACK is 0. */
uint32_t kpti_et_stack_table_row(kpti_et_stack_table *t, uint32_t stack);
/* Writes "frames":[["name","file",line],…],"stacks":[[below,frame],…]. below and frame are indices, or -1
 * for none. */
void kpti_et_stack_table_put(kpti_et_stack_table *t, kpti_et_text *out);

#endif
