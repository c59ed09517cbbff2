/* The tree of a view: parents by time on each thread, without repetitions of a name, and the stacks of backward work. */
#include "hosts/torch/exporter/events/event_view.h"

static int is_in_tree(const kpti_view *view, const kpti_row *row)
{
    const kpti_event *const event = kpti_view_event(view, row);
    return !kpti_event_is_on_device(event) && !(event->flags & KPTI_EVENT_ASYNC);
}

static void append_child(kpti_view *view, uint32_t parent, uint32_t child)
{
    kpti_row *const row = &view->rows[parent];
    if (row->last_child)
        view->rows[row->last_child - 1].next = child + 1;
    else
        row->first_child = child + 1;
    row->last_child = child + 1;
    row->child_count++;
    view->rows[child].parent = parent + 1;
}

/* A row that ends in or after its successor is no parent. While parents are found, backward links to the row around the
 * current parent, and each thread has the innermost one in INNERMOST. */
static void find_parents(kpti_view *view, uint32_t *innermost)
{
    for (uint32_t i = 0; i < view->count; i++) {
        kpti_row *const row = &view->rows[i];
        const kpti_event *const event = kpti_view_event(view, row);
        uint32_t *const top = &innermost[row->thread];
        if (!is_in_tree(view, row)) continue;
        while (*top) {
            const kpti_event *const parent = kpti_view_event(view, &view->rows[*top - 1]);
            if (event->start_ns < parent->end_ns && event->end_ns <= parent->end_ns) {
                append_child(view, *top - 1, i);
                break;
            }
            *top = view->rows[*top - 1].backward;
        }
        row->backward = *top;
        *top = i + 1;
    }
}

/* --- repetitions ------------------------------------------------------------------------------ */

static int is_repetition(const kpti_view *view, const kpti_row *row)
{
    const uint32_t *const keys = view->options.keys;
    const kpti_row *const parent = row->parent ? &view->rows[row->parent - 1] : NULL;
    return parent && parent->child_count == 1 &&
           keys[kpti_view_event(view, parent)->name] == keys[kpti_view_event(view, row)->name];
}

static void lift_children(kpti_view *view, const kpti_row *row)
{
    kpti_row *const parent = &view->rows[row->parent - 1];
    parent->first_child = row->first_child;
    parent->last_child = row->last_child;
    parent->child_count = row->child_count;
    parent->first_kernel = row->first_kernel;
    parent->last_kernel = row->last_kernel;
    for (uint32_t child = row->first_child; child; child = view->rows[child - 1].next)
        view->rows[child - 1].parent = row->parent;
}

/* Marks repetitions in IS_GONE. Returns how many. */
static uint32_t mark_repetitions(kpti_view *view, uint8_t *is_gone)
{
    uint32_t all = 0;
    uint32_t found;
    do {
        found = 0;
        for (uint32_t i = 0; i < view->count; i++) {
            if (is_gone[i] || !is_repetition(view, &view->rows[i])) continue;
            lift_children(view, &view->rows[i]);
            is_gone[i] = 1;
            found++;
        }
        all += found;
    } while (found);
    return all;
}

/* Removes the rows that are gone. */
static void close_gaps(kpti_view *view, const uint8_t *is_gone, uint32_t *now)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < view->count; i++)
        now[i + 1] = is_gone[i] ? 0 : ++left;
    now[0] = 0;
    for (uint32_t i = 0; i < view->count; i++) {
        kpti_row row = view->rows[i];
        if (is_gone[i]) continue;
        row.parent = now[row.parent];
        row.first_child = now[row.first_child];
        row.last_child = now[row.last_child];
        row.next = now[row.next];
        view->rows[now[i + 1] - 1] = row;
    }
    for (uint32_t i = 0; i < view->kernel_count; i++)
        view->kernels[i].row = now[view->kernels[i].row + 1] - 1;
    view->count = left;
}

/* --- backward work ---------------------------------------------------------------------------- */

/* Returns where the stack of the forward operators with this number is noted. */
static uint32_t *forward_stack(kpti_u64_map *stacks, uint32_t thread, uint64_t sequence_plus_1)
{
    return kpti_u64_map_at(stacks, (uint64_t)thread << 40 | (sequence_plus_1 & 0xFFFFFFFFFF));
}

static void find_backward(kpti_view *view)
{
    for (uint32_t i = 0; i < view->count; i++) { /* parents come before their children */
        kpti_row *const row = &view->rows[i];
        if (kpti_view_event(view, row)->scope == KPT_SCOPE_BACKWARD)
            row->backward = i + 1;
        else
            row->backward = row->parent ? view->rows[row->parent - 1].backward : 0;
    }
}

static kpt_status note_forward(const kpti_view *view, kpti_u64_map *stacks, const kpti_row *row)
{
    uint32_t *noted;
    if (row->backward) return KPT_OK;
    noted = forward_stack(stacks, row->thread, kpti_view_event(view, row)->sequence_plus_1);
    if (!noted) return KPT_E_MEMORY;
    if (!*noted) *noted = row->stack + 1;
    return KPT_OK;
}

static kpt_status take_forward(const kpti_view *view, kpti_u64_map *stacks, kpti_u64_map *thread_of,
                               kpti_row *row)
{
    const kpti_event *node;
    const uint32_t *thread;
    const uint32_t *noted = NULL;
    if (!row->backward) return KPT_OK;
    node = kpti_view_event(view, &view->rows[row->backward - 1]);
    thread = kpti_u64_map_at(thread_of, node->forward_thread);
    if (!thread) return KPT_E_MEMORY;
    if (*thread) noted = forward_stack(stacks, *thread - 1, node->sequence_plus_1);
    if (*thread && !noted) return KPT_E_MEMORY;
    row->stack = noted && *noted ? *noted - 1 : 0;
    return KPT_OK;
}

static kpt_status set_backward_stacks(kpti_view *view)
{
    const kpti_event_table *const t = view->table;
    kpti_u64_map stacks = {.heap = t->heap};
    kpti_u64_map thread_of = {.heap = t->heap};
    kpt_status status = KPT_OK;
    find_backward(view);
    for (uint32_t i = 0; i < t->thread_count && status == KPT_OK; i++) {
        uint32_t *const thread = kpti_u64_map_at(&thread_of, t->threads[i].number);
        if (!thread)
            status = KPT_E_MEMORY;
        else if (!*thread)
            *thread = t->threads[i].first + 1;
    }
    for (uint32_t i = 0; i < view->count && status == KPT_OK; i++)
        status = note_forward(view, &stacks, &view->rows[i]);
    for (uint32_t i = 0; i < view->count && status == KPT_OK; i++)
        status = take_forward(view, &stacks, &thread_of, &view->rows[i]);
    kpti_u64_map_free(&stacks);
    kpti_u64_map_free(&thread_of);
    return status;
}

kpt_status kpti_view_add_tree(kpti_view *view)
{
    uint8_t *const is_gone = calloc((size_t)view->count + 1, sizeof *is_gone);
    uint32_t *const now = calloc((size_t)view->count + 1, sizeof *now);
    uint32_t *const innermost = calloc((size_t)view->table->thread_count + 1, sizeof *innermost);
    kpt_status status = is_gone && now && innermost ? KPT_OK : KPT_E_MEMORY;
    if (status == KPT_OK) {
        find_parents(view, innermost);
        if (mark_repetitions(view, is_gone)) close_gaps(view, is_gone, now);
        status = set_backward_stacks(view);
    }
    free(is_gone);
    free(now);
    free(innermost);
    return status;
}
