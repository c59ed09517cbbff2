/* node_text.h: writes an operator as a node of the trace. The fields that are known at the begin are
 * written then, the others at the end. */
#ifndef KPTI_EXECUTION_TRACE_OUTPUT_NODE_TEXT_H
#define KPTI_EXECUTION_TRACE_OUTPUT_NODE_TEXT_H

#include "execution_trace/output/op_templates.h"
#include "execution_trace/output/value_templates.h"

/* An open operator. */
typedef struct kpti_et_node {
    kpti_et_item item; /* its begin */
    uint64_t id;
    uint64_t parent;
    uint64_t forward_parent;
    uint32_t stack; /* index + 1; 0 if there is none */
    const kpti_et_label *label;
    uint64_t label_number; /* at the begin; its slot may be reused since */
    kpti_et_text text;     /* up to the outputs */
} kpti_et_node;

/* The end of an operator. */
typedef struct kpti_et_node_end {
    const kpti_et_item *item; /* its end record, or NULL if there is none */
    int64_t ns;
    const char *ended_by; /* NULL if the operator ended itself */
    int64_t unix_offset_ns;
} kpti_et_node_end;

/* State that the texts of all nodes share. Starts as zeroes; then call init. */
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

/* These two functions write a node together, the second one to OUT. The attributes of begin and end were
 * checked. Before the first call, the forms have taken the begin's values; before the second, the end's
 * values or none. */
void kpti_et_node_begin(kpti_et_nodes *n, kpti_et_node *node);
void kpti_et_node_end_text(kpti_et_nodes *n, const kpti_et_node *node, const kpti_et_node_end *end,
                           kpti_et_text *out);
/* Writes the node of the process or of a thread. */
void kpti_et_node_synthetic(kpti_et_text *out, const char *what, uint64_t id, uint64_t thread,
                            uint64_t os_tid);

#endif
