/* node_builder.h: the nodes of a trace, as a journal's records make them: who is whose child, and which id it has.
 *
 * Nodes are written when they end, so children come before their parents, but for a thread's, which comes
 * with the first operator there. Every parent is written: what is open when recording stops ends then, and
 * what is still open when the journal ends, with it. */
#ifndef KPTI_EXECUTION_TRACE_OUTPUT_NODE_BUILDER_H
#define KPTI_EXECUTION_TRACE_OUTPUT_NODE_BUILDER_H

#include "execution_trace/output/node_text.h"
#include "execution_trace/output/resource_folder.h"
#include "execution_trace/output/stack_table.h"
#include "writers/io/output_file.h"

/* A thread's. */
typedef struct kpti_et_branch {
    uint64_t id;         /* of the thread's node; 0: none yet */
    kpti_et_node *nodes; /* open ones, the innermost last; behind them, texts that are used again */
    uint32_t count;
    uint32_t room;
} kpti_et_branch;

/* Begins as zeroes; then init. */
typedef struct kpti_et_tree {
    const kpti_heap *heap;
    kpti_out_file *out;
    kpti_et_resources *resources;
    kpti_et_nodes nodes;
    kpti_et_stack_table stacks;
    kpti_et_branch *branches; /* by stream */
    uint32_t branch_room;
    kpti_u64_map threads; /* by the host's number: the stream */
    kpti_et_text text;    /* of the file, what is not written yet */
    uint64_t node_count;
    int64_t unix_offset_ns;
    int64_t last_ns;
    uint64_t damaged; /* records that could not be */
    int failed;       /* no memory */
} kpti_et_tree;

void kpti_et_tree_init(kpti_et_tree *tree, const kpti_heap *heap, kpti_out_file *out,
                       kpti_et_resources *resources);
void kpti_et_tree_free(kpti_et_tree *tree);
void kpti_et_tree_take(kpti_et_tree *tree, const kpti_et_item *item);
/* There are no more: ends what is open, and puts the root. What is behind it may be added to the text. */
void kpti_et_tree_end(kpti_et_tree *tree);

#endif
