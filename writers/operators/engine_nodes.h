/* engine_nodes.h: the operators of autograd's engine, each around one node, with the numbers of the node. torch gives
 * both the same numbers; of a recording only the node has them. For deliveries in which callers come before their
 * calls. Takes 24 bytes for each. One thread at a time. */
#ifndef KPTI_WRITERS_OPERATORS_ENGINE_NODES_H
#define KPTI_WRITERS_OPERATORS_ENGINE_NODES_H

#include "abi/kpt_activity.h"
#include "core/base/allocator.h"

/* Zeroed at first, except for heap. */
typedef struct kpti_engine_nodes {
    kpti_heap heap;
    struct kpti_engine_thread *threads; /* by index */
    uint32_t thread_capacity;
} kpti_engine_nodes;

void kpti_engine_nodes_free(kpti_engine_nodes *nodes);

/* Keeps the numbers of OP, an operator, which are those of its node. Returns KPT_OK, KPT_E_MEMORY or KPT_E_LIMIT. */
kpt_status kpti_engine_nodes_add(kpti_engine_nodes *nodes, const kpt_activity *op);

/* After the last one. */
void kpti_engine_nodes_sort(kpti_engine_nodes *nodes);

/* Gives A the numbers of its node if it is one of these operators. After kpti_engine_nodes_sort. */
void kpti_engine_nodes_number(const kpti_engine_nodes *nodes, kpt_activity *a);

#endif
