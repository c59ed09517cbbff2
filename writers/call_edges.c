#include "writers/call_edges.h"

#include "core/base/batch_records.h"

/* A call that has begun. */
typedef struct open_call {
    uint32_t name;
    int64_t start_ns;
    uint64_t callees_ns; /* of the calls in it that have ended */
} open_call;

typedef struct kpti_edge_thread {
    open_call *open; /* by depth */
    uint64_t capacity;
    uint64_t count;
} kpti_edge_thread;

void kpti_call_edges_init(kpti_call_edges *edges, const kpti_heap *heap, kpti_edge_choice choice)
{
    memset(edges, 0, sizeof *edges);
    edges->heap = edges->numbers.heap = *heap;
    edges->choice = choice;
}

static int is_chosen(const kpti_call_edges *e, uint32_t caller, uint32_t callee)
{
    return (caller < e->choice.count && e->choice.callers[caller]) ||
           (callee < e->choice.count && e->choice.callees[callee]);
}

static kpt_status add(kpti_call_edges *e, uint32_t caller, uint32_t callee, uint64_t total_ns,
                      uint64_t own_ns)
{
    uint32_t *number;
    kpti_call_edge *edge;
    if (!is_chosen(e, caller, callee)) return KPT_OK;
    number = kpti_u64_map_at(&e->numbers, (uint64_t)(caller + 1) << 32 | callee);
    if (!number) return KPT_E_MEMORY;
    if (!*number) {
        if (!kpti_array_reserve(&e->heap, &e->edges, &e->capacity, (uint64_t)e->count + 1,
                                sizeof *e->edges))
            return KPT_E_MEMORY;
        e->edges[e->count] = (kpti_call_edge){caller, callee, 0, 0, 0};
        *number = ++e->count;
    }
    edge = &e->edges[*number - 1];
    edge->calls++;
    edge->total_ns += total_ns;
    edge->own_ns += own_ns;
    return KPT_OK;
}

static kpt_status begin(kpti_call_edges *e, const kpt_activity *a, kpti_edge_thread *t)
{
    if (!kpti_array_reserve(&e->heap, &t->open, &t->capacity, t->count + 1, sizeof *t->open))
        return KPT_E_MEMORY;
    t->open[t->count++] = (open_call){a->name, a->start_ns, 0};
    return KPT_OK;
}

static kpt_status end(kpti_call_edges *e, int64_t end_ns, kpti_edge_thread *t)
{
    open_call ended;
    uint64_t ns;
    open_call *caller;
    if (!t->count) return KPT_OK;
    ended = t->open[--t->count];
    caller = t->count ? &t->open[t->count - 1] : NULL;
    ns = (uint64_t)end_ns - (uint64_t)ended.start_ns;
    if (caller) caller->callees_ns += ns;
    return add(e, caller ? caller->name : (uint32_t)KPTI_EDGE_NO_CALLER, ended.name, ns,
               ns - ended.callees_ns);
}

static kpt_status take(kpti_call_edges *e, const kpt_activity *a)
{
    kpti_edge_thread *t;
    kpt_status status;
    if (a->kind == KPT_KIND_POINT || a->kind == KPT_KIND_RANGE_BEGIN ||
        a->kind == KPT_KIND_RANGE_END)
        return KPT_OK;
    status =
        kpti_array_reach(&e->heap, &e->threads, &e->thread_capacity, a->thread, sizeof *e->threads);
    if (status != KPT_OK) return status;
    t = &e->threads[a->thread];
    if (a->phase != KPT_PHASE_END) status = begin(e, a, t);
    if (a->phase == KPT_PHASE_BEGIN || status != KPT_OK) return status;
    return end(e, a->end_ns, t);
}

kpt_status kpti_call_edges_batch(void *edges, const kpt_batch *batch)
{
    kpti_call_edges *e = edges;
    kpt_status status = KPT_OK;
    if (!kpti_records_can_read(batch)) return KPT_E_SIZE;
    if (batch->order != KPT_ORDER_TIME) return KPT_E_UNSUPPORTED;
    for (uint32_t i = 0; i < batch->activity_count && status == KPT_OK; i++)
        status = take(e, kpti_record(batch->activities, batch->activity_stride, i));
    return status;
}

void kpti_call_edges_free(kpti_call_edges *edges)
{
    for (uint32_t i = 0; i < edges->thread_capacity; i++)
        kpti_heap_give(&edges->heap, edges->threads[i].open,
                       (size_t)edges->threads[i].capacity * sizeof(open_call));
    kpti_heap_give(&edges->heap, edges->threads,
                   (size_t)edges->thread_capacity * sizeof *edges->threads);
    kpti_heap_give(&edges->heap, edges->edges, (size_t)edges->capacity * sizeof *edges->edges);
    kpti_u64_map_free(&edges->numbers);
}
