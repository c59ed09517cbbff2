/* node_builder.h: builds the nodes of a trace from a journal's records, and assigns their parents and ids.
 *
 * A node is written when it ends, so children precede their parents. The exception is a thread's node,
 * which is written with the thread's first operator. Every parent is written: operators that are open when
 * recording stops end then, and operators that are still open at the end of the journal end there. */
#ifndef KPTI_EXECUTION_TRACE_OUTPUT_NODE_BUILDER_H
#define KPTI_EXECUTION_TRACE_OUTPUT_NODE_BUILDER_H

#include "execution_trace/output/node_text.h"
#include "execution_trace/output/resource_folder.h"
#include "execution_trace/output/stack_table.h"
#include "writers/io/output_file.h"

/* The open nodes of a thread. */
typedef struct kpti_et_branch {
    uint64_t id;         /* of the thread's node; 0 before the first operator */
    kpti_et_node *nodes; /* open nodes, the innermost last; behind them, text buffers for reuse */
    uint32_t count;
    uint32_t capacity;
} kpti_et_branch;

/* Starts as zeroes; then call init. */
typedef struct kpti_et_tree {
    const kpti_heap *heap;
    kpti_out_file *out;
    kpti_et_resources *resources;
    kpti_et_nodes nodes;
    kpti_et_stack_table stacks;
    kpti_et_branch *branches; /* by stream */
    uint32_t branch_capacity;
    kpti_u64_map threads; /* the stream, by the host's number of the thread */
    kpti_et_text text;    /* text of the file that is not written yet */
    uint64_t node_count;
    int64_t unix_offset_ns;
    int64_t last_ns;
    uint64_t damaged; /* invalid records */
    int failed;       /* there was no memory */
} kpti_et_tree;

void kpti_et_tree_init(kpti_et_tree *tree, const kpti_heap *heap, kpti_out_file *out,
                       kpti_et_resources *resources);
void kpti_et_tree_free(kpti_et_tree *tree);
void kpti_et_tree_take(kpti_et_tree *tree, const kpti_et_item *item);
/* Called after the last record. Ends all open nodes and adds the root. The caller may append to the text. */
void kpti_et_tree_end(kpti_et_tree *tree);

#endif
