#include "writers/operators/operator_walk.h"

#include "core/base/batch_records.h"

typedef struct kpti_forward {
    int64_t start_ns;
    uint32_t thread;
    uint32_t stack;
    uint32_t link; /* index + 1; 0: no node has its number yet */
} forward;

/* The Python functions that are open on a thread. A stack gets a node only if an operator begins in it. */
typedef struct open_function {
    uint32_t name;
    uint32_t stack; /* valid below the thread's known_depth */
} open_function;

typedef struct open_operator {
    kpti_walked_operator op;
    uint64_t id; /* of a range: its number */
    uint64_t inside_ns;
    uint64_t gpu_inside_ns;
    uint32_t
        range; /* of a range in which something was launched: its number among the launches' ranges */
    int has_number; /* a sequence number */
} open_operator;

typedef struct kpti_walked_thread {
    uint64_t host_number; /* the host's number of the thread; 0: not known */
    uint64_t os_tid;
    kpti_gpu_launch *launch; /* the next one */
    kpti_gpu_launch *launches_end;
    open_function *functions;
    uint32_t function_capacity;
    uint32_t depth;
    uint32_t known_depth; /* functions below this depth have a stack */
    open_operator *operators;
    uint32_t operator_capacity;
    uint32_t operator_count;
} walked_thread;

void kpti_operator_walk_init(kpti_operator_walk *w, const kpti_heap *heap, kpti_walked_fn ended,
                             void *ended_ctx)
{
    *w = (kpti_operator_walk){.heap = *heap, .ended = ended, .ended_ctx = ended_ctx};
    w->forward_of.heap = w->launches.heap = *heap;
    kpti_python_stacks_init(&w->stacks, heap);
}

void kpti_operator_walk_free(kpti_operator_walk *w)
{
    for (uint32_t i = 0; i < w->thread_capacity; i++) {
        walked_thread *t = &w->threads[i];
        kpti_heap_give(&w->heap, t->functions, t->function_capacity * sizeof *t->functions);
        kpti_heap_give(&w->heap, t->operators, t->operator_capacity * sizeof *t->operators);
    }
    kpti_heap_give(&w->heap, w->threads, w->thread_capacity * sizeof *w->threads);
    kpti_heap_give(&w->heap, w->forwards, w->forward_capacity * sizeof *w->forwards);
    kpti_heap_give(&w->heap, w->links, w->link_capacity * sizeof *w->links);
    kpti_python_stacks_free(&w->stacks);
    kpti_u64_map_free(&w->forward_of);
    kpti_gpu_launches_free(&w->launches);
}

/* --- Python stacks ------------------------------------------------------------------------------ */

/* Finds the stack of the functions that are open on the thread. */
static kpt_status find_stack(kpti_operator_walk *w, walked_thread *t, uint32_t *out)
{
    kpt_status status = KPT_OK;
    uint32_t stack = t->known_depth ? t->functions[t->known_depth - 1].stack : 0;
    for (; t->known_depth < t->depth && status == KPT_OK; t->known_depth++) {
        open_function *f = &t->functions[t->known_depth];
        status = kpti_python_stacks_find(&w->stacks, stack, f->name, &f->stack);
        stack = f->stack;
        if (status != KPT_OK) break;
    }
    *out = stack;
    return status;
}

uint32_t kpti_operator_walk_function(const kpti_operator_walk *w, uint32_t stack)
{
    return kpti_python_stacks_function(&w->stacks, stack);
}

static kpt_status take_function(kpti_operator_walk *w, walked_thread *t, const kpt_activity *a)
{
    kpt_status status;
    if (a->phase == KPT_PHASE_END) {
        if (t->depth) t->depth--;
        if (t->known_depth > t->depth) t->known_depth = t->depth;
        return KPT_OK;
    }
    status = kpti_array_reach(&w->heap, &t->functions, &t->function_capacity, t->depth,
                              sizeof *t->functions);
    if (status == KPT_OK) t->functions[t->depth++] = (open_function){a->name, 0};
    return status;
}

/* --- forward and backward ----------------------------------------------------------------------- */

static uint64_t forward_key(uint64_t host_thread, uint64_t sequence_plus_1)
{
    enum { SEQUENCE_BITS = 40, THREAD_BITS = 23 };
    return (host_thread & ((UINT64_C(1) << THREAD_BITS) - 1)) << SEQUENCE_BITS |
           (sequence_plus_1 & ((UINT64_C(1) << SEQUENCE_BITS) - 1));
}

static kpt_status note_forward(kpti_operator_walk *w, const walked_thread *t, const kpt_activity *a,
                               uint32_t stack)
{
    uint32_t *known = kpti_u64_map_at(&w->forward_of, forward_key(t->host_number, a->value0));
    kpt_status status;
    if (!known) return KPT_E_MEMORY;
    if (!*known) {
        status = kpti_array_reach(&w->heap, &w->forwards, &w->forward_capacity, w->forward_count,
                                  sizeof *w->forwards);
        if (status != KPT_OK) return status;
        *known = ++w->forward_count;
    }
    w->forwards[*known - 1] = (forward){a->start_ns, a->thread, stack, 0};
    return KPT_OK;
}

/* *OUT is NULL if the forward operator is not known. */
static kpt_status find_forward(kpti_operator_walk *w, const kpt_activity *a, forward **out)
{
    const uint32_t *known = kpti_u64_map_at(&w->forward_of, forward_key(a->value1, a->value0));
    *out = known && *known ? &w->forwards[*known - 1] : NULL;
    return known ? KPT_OK : KPT_E_MEMORY;
}

static kpt_str shown_function(const kpti_operator_walk *w, uint32_t stack)
{
    return kpti_python_stacks_text(&w->stacks, kpti_operator_walk_function(w, stack));
}

int kpti_operator_walk_forward(kpti_operator_walk *w, const kpt_activity *a, kpt_str *function)
{
    forward *f;
    *function = (kpt_str){"", 0};
    if (a->kind != KPT_KIND_OPERATOR || !a->value0 || !a->value1) return 0;
    /* The walk has asked for it before, so that this takes no memory. */
    (void)find_forward(w, a, &f);
    if (f && f->stack) *function = shown_function(w, f->stack);
    return 1;
}

uint32_t kpti_operator_walk_link(kpti_operator_walk *w, const kpt_activity *a)
{
    const kpti_forward_link *link;
    kpt_activity node = *a;
    forward *f;
    int64_t ns;
    if (a->kind != KPT_KIND_OPERATOR || !a->value0 || a->thread >= w->thread_capacity) return 0;
    if (!a->value1) node.value1 = w->threads[a->thread].host_number;
    (void)find_forward(w, &node, &f); /* takes no memory, as above */
    if (!f || !f->link) return 0;
    link = &w->links[f->link - 1];
    if (a->thread != (a->value1 ? link->backward_thread : link->forward_thread)) return 0;
    ns = a->value1 ? link->backward_ns : link->forward_ns;
    return a->start_ns == (w->shift ? kpti_shifted(w->shift, ns) : ns) ? f->link : 0;
}

/* Links A, a node, with its forward operator. */
static kpt_status add_link(kpti_operator_walk *w, const kpt_activity *a, forward *f)
{
    const kpt_status status =
        kpti_array_reach(&w->heap, &w->links, &w->link_capacity, w->link_count, sizeof *w->links);
    if (status != KPT_OK) return status;
    w->links[w->link_count++] = (kpti_forward_link){f->start_ns, a->start_ns, f->thread, a->thread};
    f->link = w->link_count;
    return KPT_OK;
}

/* OUTER is the operator around O; NULL: none. */
static kpt_status link_backward(kpti_operator_walk *w, const kpt_activity *a, open_operator *o,
                                open_operator *outer)
{
    forward *f;
    kpt_status status = find_forward(w, a, &f);
    if (status != KPT_OK) return status;
    o->op.is_backward = 1;
    o->op.forward = f ? f->stack : 0;
    if (outer && outer->op.kind == KPT_KIND_OPERATOR && !outer->has_number) {
        outer->op.is_backward = 1;
        outer->op.forward = o->op.forward;
    }
    return f && !f->link ? add_link(w, a, f) : KPT_OK;
}

kpt_status kpti_operator_walk_begin(kpti_operator_walk *w, const kpt_activity *a)
{
    forward *f;
    kpt_status status;
    if (a->kind != KPT_KIND_OPERATOR || !a->value0) return KPT_OK;
    if (a->thread >= w->thread_capacity) return KPT_E_INVALID;
    if (!a->value1) return note_forward(w, &w->threads[a->thread], a, 0);
    status = find_forward(w, a, &f);
    return status == KPT_OK && f && !f->link ? add_link(w, a, f) : status;
}

/* --- launches ----------------------------------------------------------------------------------- */

kpt_status kpti_operator_walk_add_gpu(kpti_operator_walk *w, const kpti_gpu_log *log)
{
    return kpti_gpu_launches_make(&w->launches, log);
}

/* Finds the number of the innermost range among the first COUNT operators; 0: there is none. */
static kpt_status find_range(kpti_operator_walk *w, walked_thread *t, uint32_t count, uint32_t *out)
{
    open_operator *o;
    uint32_t outer = 0;
    kpt_status status;
    *out = 0;
    while (count && t->operators[count - 1].op.kind != KPT_KIND_RANGE_BEGIN)
        count--;
    if (!count) return KPT_OK;
    o = &t->operators[count - 1];
    if (!o->range) {
        status = find_range(w, t, count - 1, &outer);
        if (status != KPT_OK) return status;
        status = kpti_gpu_launches_add_range(
            &w->launches, kpti_python_stacks_text(&w->stacks, o->op.name), outer, &o->range);
        if (status != KPT_OK) return status;
        w->launches.ranges[o->range - 1].start_ns = o->op.start_ns;
        w->launches.ranges[o->range - 1].thread = o->op.thread;
    }
    *out = o->range;
    return KPT_OK;
}

/* Adds the launches before END_NS to the innermost operator. */
static kpt_status take_launches(kpti_operator_walk *w, walked_thread *t, int64_t end_ns)
{
    open_operator *o = t->operator_count ? &t->operators[t->operator_count - 1] : NULL;
    for (; t->launch < t->launches_end && t->launch->start_ns < end_ns; t->launch++) {
        kpti_gpu_launch *launch = t->launch;
        kpt_status status;
        if (!o) continue;
        status = find_range(w, t, t->operator_count, &launch->range);
        if (status != KPT_OK) return status;
        o->op.gpu_own_ns += launch->work_ns;
        launch->is_backward = o->op.is_backward;
        if (o->op.is_backward && o->op.forward) launch->forward = shown_function(w, o->op.forward);
    }
    return KPT_OK;
}

uint32_t kpti_operator_walk_claim(kpti_operator_walk *w, const kpt_activity *a)
{
    if (!w->launches.count || a->thread >= w->thread_capacity) return 0;
    return kpti_gpu_launches_claim(&w->launches, w->threads[a->thread].os_tid, a->start_ns,
                                   a->end_ns, a->id);
}

void kpti_operator_walk_claim_inner(kpti_operator_walk *w, const kpt_activity *a, uint64_t external)
{
    if (!w->launches.count || a->thread >= w->thread_capacity) return;
    kpti_gpu_launches_claim_inner(&w->launches, w->threads[a->thread].os_tid, a->start_ns,
                                  a->end_ns, external);
}

/* --- operators ---------------------------------------------------------------------------------- */

static kpt_status begin_operator(kpti_operator_walk *w, walked_thread *t, const kpt_activity *a)
{
    const int is_range = a->kind == KPT_KIND_RANGE_BEGIN;
    kpt_status status = kpti_array_reach(&w->heap, &t->operators, &t->operator_capacity,
                                         t->operator_count, sizeof *t->operators);
    open_operator *o;
    if (status == KPT_OK) status = take_launches(w, t, a->start_ns);
    if (status != KPT_OK) return status;
    o = &t->operators[t->operator_count];
    *o = (open_operator){
        .op = {.name = a->name, .thread = a->thread, .kind = a->kind, .start_ns = a->start_ns},
        .id = is_range ? a->value0 : a->id};
    for (uint32_t i = 0; i < t->operator_count; i++)
        if (t->operators[i].op.name == a->name) o->op.is_inside = 1;
    status = find_stack(w, t, &o->op.stack);
    if (status != KPT_OK) return status;
    if (t->operator_count) {
        o->op.is_backward = o[-1].op.is_backward;
        o->op.forward = o[-1].op.forward;
    }
    o->has_number = !is_range && a->value0;
    t->operator_count++;
    if (!o->has_number) return KPT_OK;
    if (!a->value1) return note_forward(w, t, a, o->op.stack);
    return link_backward(w, a, o, t->operator_count > 1 ? o - 1 : NULL);
}

/* The one that ends is the innermost, unless ranges cross. */
static kpt_status end_operator(kpti_operator_walk *w, walked_thread *t, const kpt_activity *a)
{
    const int is_range = a->kind == KPT_KIND_RANGE_END;
    const uint64_t id = is_range ? a->value0 : a->id;
    const int64_t end_ns = is_range ? a->start_ns : a->end_ns;
    const kpt_status status = take_launches(w, t, end_ns);
    kpti_walked_operator op;
    uint64_t ns;
    uint32_t at = t->operator_count;
    if (status != KPT_OK) return status;
    while (at > 0 && (t->operators[at - 1].id != id ||
                      (t->operators[at - 1].op.kind == KPT_KIND_RANGE_BEGIN) != is_range))
        at--;
    if (!at) return KPT_OK;
    at--;
    op = t->operators[at].op;
    op.end_ns = end_ns;
    op.flags = a->flags;
    ns = op.end_ns > op.start_ns ? (uint64_t)op.end_ns - (uint64_t)op.start_ns : 0;
    op.own_ns = ns > t->operators[at].inside_ns ? ns - t->operators[at].inside_ns : 0;
    op.gpu_total_ns = op.gpu_own_ns + t->operators[at].gpu_inside_ns;
    if (at) {
        t->operators[at - 1].inside_ns += ns;
        t->operators[at - 1].gpu_inside_ns += op.gpu_total_ns;
    }
    t->operator_count--;
    memmove(&t->operators[at], &t->operators[at + 1],
            (t->operator_count - at) * sizeof *t->operators);
    return w->ended ? w->ended(w->ended_ctx, &op) : KPT_OK;
}

/* --- batches ------------------------------------------------------------------------------------ */

static kpt_status reach_thread(kpti_operator_walk *w, uint32_t thread)
{
    return kpti_array_reach(&w->heap, &w->threads, &w->thread_capacity, thread, sizeof *w->threads);
}

kpt_status kpti_operator_walk_thread(kpti_operator_walk *w, const kpt_thread *thread)
{
    const kpt_status status = reach_thread(w, thread->index);
    walked_thread *t;
    if (status != KPT_OK) return status;
    t = &w->threads[thread->index];
    t->host_number = thread->host_value;
    t->os_tid = thread->os_tid;
    t->launch = kpti_gpu_launches_of_thread(&w->launches, t->os_tid, &t->launches_end);
    return KPT_OK;
}

static kpt_status take_activity(kpti_operator_walk *w, const kpt_activity *a)
{
    kpt_status status = reach_thread(w, a->thread);
    walked_thread *t;
    if (status != KPT_OK) return status;
    t = &w->threads[a->thread];
    switch (a->kind) {
    case KPT_KIND_PYTHON:
        return take_function(w, t, a);
    case KPT_KIND_OPERATOR:
        return a->phase == KPT_PHASE_END ? end_operator(w, t, a) : begin_operator(w, t, a);
    case KPT_KIND_RANGE_BEGIN:
        return begin_operator(w, t, a);
    case KPT_KIND_RANGE_END:
        return end_operator(w, t, a);
    default:
        return KPT_OK;
    }
}

kpt_status kpti_operator_walk_batch(void *walk, const kpt_batch *batch)
{
    kpti_operator_walk *w = walk;
    kpt_status status = KPT_OK;
    if (!kpti_records_can_read(batch)) return KPT_E_SIZE;
    if (batch->order != KPT_ORDER_TIME) return KPT_E_UNSUPPORTED;
    for (uint32_t i = 0; i < batch->name_count && status == KPT_OK; i++)
        status =
            kpti_python_stacks_name(&w->stacks, kpti_record(batch->names, batch->name_stride, i));
    for (uint32_t i = 0; i < batch->thread_count && status == KPT_OK; i++)
        status = kpti_operator_walk_thread(w, kpti_record(batch->threads, batch->thread_stride, i));
    for (uint32_t i = 0; i < batch->activity_count && status == KPT_OK; i++)
        status = take_activity(w, kpti_record(batch->activities, batch->activity_stride, i));
    return status;
}
