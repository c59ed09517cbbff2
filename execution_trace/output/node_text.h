/* node_text.h: an operator as a node of the trace. What is known when it begins is written then, the rest
 * when it ends. */
#ifndef KPTI_EXECUTION_TRACE_OUTPUT_NODE_TEXT_H
#define KPTI_EXECUTION_TRACE_OUTPUT_NODE_TEXT_H

#include "execution_trace/output/op_templates.h"
#include "execution_trace/output/value_templates.h"

/* An operator that is open. */
typedef struct kpti_et_node {
    kpti_et_item item; /* its begin */
    uint64_t id;
    uint64_t parent;
    uint64_t forward_parent;
    uint32_t stack; /* one more than its index; 0: none */
    const kpti_et_label *label;
    uint64_t label_number; /* that it had */
    kpti_et_text text;     /* up to the outputs */
} kpti_et_node;

/* How it ended. */
typedef struct kpti_et_node_end {
    const kpti_et_item *item; /* its end; NULL: there is none */
    int64_t ns;
    const char *ended_by; /* NULL: itself */
    int64_t unix_offset_ns;
} kpti_et_node_end;

/* What the texts of all nodes share. Begins as zeroes; then init. */
typedef struct kpti_et_nodes {
    kpti_et_labels labels;
    kpti_et_forms forms;
    kpti_near last_id;
    kpti_near last_parent;
    kpti_near last_record;
    kpti_near last_start;
} kpti_et_nodes;

void kpti_et_nodes_init(kpti_et_nodes *n, const kpti_heap *heap);
void kpti_et_nodes_free(kpti_et_nodes *n);

/* Both together write a node, the second one to OUT. The attributes of begin and end were checked; the forms
 * have taken the values, the begin's for the first one, the end's or none for the second. */
void kpti_et_node_begin(kpti_et_nodes *n, kpti_et_node *node);
void kpti_et_node_end_text(kpti_et_nodes *n, const kpti_et_node *node, const kpti_et_node_end *end,
                           kpti_et_text *out);
/* The process's or a thread's. */
void kpti_et_node_synthetic(kpti_et_text *out, const char *what, uint64_t id, uint64_t thread,
                            uint64_t os_tid);

#endif
