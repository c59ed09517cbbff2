/* node_text.h: an operator as a node of the trace. What is known when it begins is written then, the rest
 * when it ends. */
#ifndef KPTI_ET_NODE_TEXT_H
#define KPTI_ET_NODE_TEXT_H

#include "value_text.h"

/* An operator that is open. */
typedef struct kpti_et_node {
    kpti_et_item item; /* its begin */
    uint64_t id;
    uint64_t parent;
    uint64_t forward_parent;
    uint32_t stack; /* one more than its index; 0: none */
    kpti_et_text text;
} kpti_et_node;

/* How it ended. */
typedef struct kpti_et_node_end {
    const kpti_et_item *item; /* its end; NULL: there is none */
    int64_t ns;
    const char *ended_by; /* NULL: itself */
    int64_t unix_offset_ns;
} kpti_et_node_end;

/* The begin's values and attributes were checked, and so were the end's. */
void kpti_et_node_begin(kpti_et_naming *n, kpti_et_node *node);
void kpti_et_node_end_text(kpti_et_naming *n, kpti_et_node *node, const kpti_et_node_end *end);
/* The process's or a thread's. */
void kpti_et_node_synthetic(kpti_et_text *out, const char *what, uint64_t id, uint64_t thread,
                            uint64_t os_tid);

#endif
