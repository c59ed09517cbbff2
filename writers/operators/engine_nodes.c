#include "writers/operators/engine_nodes.h"

#include <stdlib.h>

#include "core/base/growable_array.h"

typedef struct engine_operator {
    int64_t start_ns;
    uint64_t sequence_plus_1;
    uint64_t forward_thread;
} engine_operator;

typedef struct kpti_engine_thread {
    engine_operator *operators; /* by start */
    uint32_t capacity;
    uint32_t count;
} engine_thread;

void kpti_engine_nodes_free(kpti_engine_nodes *n)
{
    for (uint32_t i = 0; i < n->thread_capacity; i++)
        kpti_heap_give(&n->heap, n->threads[i].operators,
                       n->threads[i].capacity * sizeof *n->threads[i].operators);
    kpti_heap_give(&n->heap, n->threads, n->thread_capacity * sizeof *n->threads);
    n->threads = NULL;
    n->thread_capacity = 0;
}

kpt_status kpti_engine_nodes_add(kpti_engine_nodes *n, const kpt_activity *op)
{
    kpt_status status = kpti_array_reach(&n->heap, &n->threads, &n->thread_capacity, op->thread,
                                         sizeof *n->threads);
    engine_thread *t;
    if (status != KPT_OK) return status;
    t = &n->threads[op->thread];
    status =
        kpti_array_reach(&n->heap, &t->operators, &t->capacity, t->count, sizeof *t->operators);
    if (status != KPT_OK) return status;
    t->operators[t->count++] = (engine_operator){op->start_ns, op->value0, op->value1};
    return KPT_OK;
}

static int by_start(const void *a, const void *b)
{
    const int64_t left = ((const engine_operator *)a)->start_ns;
    const int64_t right = ((const engine_operator *)b)->start_ns;
    return (left > right) - (left < right);
}

void kpti_engine_nodes_sort(kpti_engine_nodes *n)
{
    for (uint32_t i = 0; i < n->thread_capacity; i++)
        if (n->threads[i].count)
            qsort(n->threads[i].operators, n->threads[i].count, sizeof(engine_operator), by_start);
}

void kpti_engine_nodes_number(const kpti_engine_nodes *n, kpt_activity *a)
{
    const engine_thread *t;
    uint32_t from = 0;
    uint32_t to;
    if (a->kind != KPT_KIND_OPERATOR || a->value0 || a->thread >= n->thread_capacity) return;
    t = &n->threads[a->thread];
    to = t->count;
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        if (t->operators[middle].start_ns < a->start_ns)
            from = middle + 1;
        else
            to = middle;
    }
    if (from == t->count || t->operators[from].start_ns != a->start_ns) return;
    a->value0 = t->operators[from].sequence_plus_1;
    a->value1 = t->operators[from].forward_thread;
}
