#include "hosts/torch/exporter/events/event_view.h"

/* torch's numbers of devices. */
enum { CPU = 0, CUDA = 1, MKLDNN = 2, IDEEP = 5, HIP = 6, XPU = 12, PRIVATEUSE1 = 20 };

/* The bytes of the [memory] records up to each one. */
typedef struct totals {
    int64_t cpu;
    int64_t device;
} totals;

typedef struct maker {
    kpti_view *view;
    totals *before; /* of each [memory] record, and of the end */
    uint32_t *
        starts; /* of each [memory] record: how many events with it begin here, less those that ended before */
    uint64_t max_id;
    kpti_u64_map linked; /* by the id of an operator: its first link */
} maker;

/* --- memory ----------------------------------------------------------------------------------- */

static int is_cpu_memory(int32_t type)
{
    return type == CPU || type == MKLDNN || type == IDEEP;
}

static int is_device_memory(int32_t type)
{
    return type == CUDA || type == HIP || type == XPU || type == PRIVATEUSE1;
}

/* What could not be allocated belongs to no event. */
static int is_out_of_memory(const kpti_event_table *t, uint32_t record)
{
    return (t->memory[record].flags & KPTI_TORCH_OUT_OF_MEMORY) != 0;
}

static void add_bytes(const kpti_torch_memory *memory, totals *sum)
{
    if (is_cpu_memory(memory->device_type)) sum->cpu += memory->size;
    if (is_device_memory(memory->device_type)) sum->device += memory->size;
}

static kpt_status sum_memory(maker *m)
{
    const kpti_event_table *const t = m->view->table;
    m->before = calloc((size_t)t->memory_count + 1, sizeof *m->before);
    m->starts = calloc((size_t)t->memory_count + 1, sizeof *m->starts);
    if (!m->before || !m->starts) return KPT_E_MEMORY;
    for (uint32_t i = 0; i < t->memory_count; i++) {
        m->before[i + 1] = m->before[i];
        if (!is_out_of_memory(t, i)) add_bytes(&t->memory[i], &m->before[i + 1]);
    }
    return KPT_OK;
}

/* Returns the first [memory] record at TIME_NS or later; after it if IS_AFTER. */
static uint32_t first_memory(const kpti_event_table *t, int64_t time_ns, int is_after)
{
    uint32_t low = 0;
    uint32_t high = t->memory_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const int64_t at = t->memory[middle].at_ns;
        if (at < time_ns || (is_after && at == time_ns))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void add_memory(maker *m, kpti_row *row, const kpti_event *event)
{
    const kpti_event_table *const t = m->view->table;
    uint32_t first;
    uint32_t end;
    if (!t->memory_count || kpti_event_is_on_device(event)) return;
    first = first_memory(t, event->start_ns, 0);
    end = first_memory(t, event->end_ns, 1);
    if (first >= end) return;
    row->cpu_bytes = m->before[end].cpu - m->before[first].cpu;
    row->device_bytes = m->before[end].device - m->before[first].device;
    m->starts[first]++;
    m->starts[end]--; /* wraps around; the sums are right */
}

/* --- rows ------------------------------------------------------------------------------------- */

static kpti_row *add_row(kpti_view *view, uint32_t index, uint64_t id)
{
    const kpti_event *const event = &view->table->events[index];
    const kpti_heap heap = view->table->heap;
    kpti_row *row;
    if (kpti_array_reach(&heap, &view->rows, &view->capacity, view->count, sizeof *view->rows) !=
        KPT_OK)
        return NULL;
    row = &view->rows[view->count++];
    memset(row, 0, sizeof *row);
    row->event = index;
    row->id = id;
    if (event->thread < view->table->thread_count)
        row->thread = view->table->threads[event->thread].first;
    row->stack = event->stack;
    return row;
}

static uint64_t id_of(const kpti_event_table *t, const kpti_event *event)
{
    if (event->kind >= KPTI_EVENT_GPU_CALL) return t->gpu[event->more].correlation;
    return event->kind <= KPTI_EVENT_ANNOTATION ? event->id : 0;
}

static kpt_status add_event(maker *m, uint32_t index)
{
    kpti_view *const view = m->view;
    const kpti_event *const event = &view->table->events[index];
    const uint64_t id = id_of(view->table, event);
    kpti_row *row;
    if (event->kind == KPTI_EVENT_MEMORY || view->options.flags[event->name] & KPTI_NAME_HIDDEN)
        return KPT_OK;
    row = add_row(view, index, id);
    if (!row) return KPT_E_MEMORY;
    if (id > m->max_id) m->max_id = id;
    add_memory(m, row, event);
    return KPT_OK;
}

/* Adds a row for each [memory] instant that is in no event. */
static kpt_status add_lone_memory(maker *m)
{
    const kpti_event_table *const t = m->view->table;
    uint32_t around = 0;
    for (uint32_t i = 0; i < t->memory_count; i++)
        m->starts[i] = around += m->starts[i];
    for (uint32_t i = 0; t->memory_count && i < t->cpu_count; i++) {
        const kpti_event *const event = &t->events[i];
        totals bytes = {0, 0};
        kpti_row *row;
        if (event->kind != KPTI_EVENT_MEMORY ||
            (m->starts[event->more] && !is_out_of_memory(t, event->more)))
            continue;
        row = add_row(m->view, i, ++m->max_id);
        if (!row) return KPT_E_MEMORY;
        add_bytes(&t->memory[event->more], &bytes);
        row->cpu_bytes = bytes.cpu;
        row->device_bytes = bytes.device;
    }
    return KPT_OK;
}

/* --- GPUs ------------------------------------------------------------------------------------- */

static uint32_t linked_of(const kpti_event_table *t, const kpti_event *event)
{
    return event->kind >= KPTI_EVENT_GPU_CALL ? t->gpu[event->more].linked : 0;
}

/* Appends the row INDEX to the kernels of ROW. */
static kpt_status append_kernel(kpti_view *view, kpti_row *row, uint32_t index)
{
    const kpti_heap heap = view->table->heap;
    if (kpti_array_reach(&heap, &view->kernels, &view->kernel_capacity, view->kernel_count,
                         sizeof *view->kernels) != KPT_OK)
        return KPT_E_MEMORY;
    view->kernels[view->kernel_count++] = (kpti_row_kernel){index, 0};
    if (row->last_kernel)
        view->kernels[row->last_kernel - 1].next = view->kernel_count;
    else
        row->first_kernel = view->kernel_count;
    row->last_kernel = view->kernel_count;
    return KPT_OK;
}

/* Gives the row of an operator what is linked to it: kernels, and the calls of CUDA its thread. */
static kpt_status take_links(kpti_view *view, kpti_row *row, uint32_t first, const uint32_t *next)
{
    for (uint32_t link = first; link; link = next[link - 1]) {
        kpti_row *const other = &view->rows[link - 1];
        if (!kpti_event_is_on_device(kpti_view_event(view, other)))
            other->thread = row->thread;
        else if (append_kernel(view, row, link - 1) != KPT_OK)
            return KPT_E_MEMORY;
    }
    return KPT_OK;
}

/* Rows are in the order of events still. */
static kpt_status link_gpu(maker *m)
{
    kpti_view *const view = m->view;
    const kpti_event_table *const t = view->table;
    kpt_status status = KPT_OK;
    uint32_t *next;
    if (t->count == t->cpu_count) return KPT_OK;
    next = calloc((size_t)view->count + 1, sizeof *next);
    if (!next) return KPT_E_MEMORY;
    for (uint32_t i = view->count; i-- > 0 && status == KPT_OK;) { /* lists begin with the first */
        const uint32_t linked = linked_of(t, kpti_view_event(view, &view->rows[i]));
        uint32_t *const first = linked ? kpti_u64_map_at(&m->linked, linked) : NULL;
        if (linked && !first) status = KPT_E_MEMORY;
        if (!first) continue;
        next[i] = *first;
        *first = i + 1;
    }
    for (uint32_t i = 0; i < view->count && status == KPT_OK; i++) {
        kpti_row *const row = &view->rows[i];
        const kpti_event *const event = kpti_view_event(view, row);
        const uint32_t *first;
        if (!row->id || kpti_event_is_on_device(event) || linked_of(t, event) ||
            event->flags & KPTI_EVENT_ASYNC)
            continue;
        first = kpti_u64_map_at(&m->linked, row->id);
        status = first ? take_links(view, row, *first, next) : KPT_E_MEMORY;
    }
    free(next);
    return status;
}

/* --- order ------------------------------------------------------------------------------------ */

/* The start, the longest first, and the order of rows. */
typedef struct place {
    int64_t start_ns;
    int64_t end_ns;
    uint32_t row;
} place;

static int compare_places(const void *left, const void *right)
{
    const place *const a = left;
    const place *const b = right;
    if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns ? -1 : 1;
    if (a->end_ns != b->end_ns) return a->end_ns > b->end_ns ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

/* Moves the rows to their places, and renumbers kernels. */
static kpt_status apply_order(kpti_view *view, const place *places)
{
    kpti_row *const sorted = malloc(((size_t)view->count + 1) * sizeof *sorted);
    uint32_t *const now = malloc(((size_t)view->count + 1) * sizeof *now);
    const int done = sorted && now;
    for (uint32_t i = 0; done && i < view->count; i++) {
        sorted[i] = view->rows[places[i].row];
        now[places[i].row] = i;
    }
    for (uint32_t i = 0; done && i < view->kernel_count; i++)
        view->kernels[i].row = now[view->kernels[i].row];
    free(now);
    if (!done) {
        free(sorted);
        return KPT_E_MEMORY;
    }
    free(view->rows);
    view->rows = sorted;
    view->capacity = view->count;
    return KPT_OK;
}

static kpt_status sort(kpti_view *view)
{
    place *const places = malloc(((size_t)view->count + 1) * sizeof *places);
    int is_sorted = 1;
    kpt_status status = KPT_OK;
    if (!places) return KPT_E_MEMORY;
    for (uint32_t i = 0; i < view->count; i++) {
        const kpti_event *const event = kpti_view_event(view, &view->rows[i]);
        places[i] = (place){event->start_ns, event->end_ns, i};
        if (i && compare_places(&places[i - 1], &places[i]) > 0) is_sorted = 0;
    }
    if (!is_sorted) {
        qsort(places, view->count, sizeof *places, compare_places);
        status = apply_order(view, places);
    }
    free(places);
    return status;
}

/* --- all of it -------------------------------------------------------------------------------- */

kpt_status kpti_view_make(kpti_view *view)
{
    maker m = {.view = view};
    kpt_status status = sum_memory(&m);
    for (uint32_t i = 0; i < view->table->count && status == KPT_OK; i++)
        status = add_event(&m, i);
    if (status == KPT_OK) status = link_gpu(&m);
    if (status == KPT_OK) status = add_lone_memory(&m);
    if (status == KPT_OK) status = sort(view);
    if (status == KPT_OK) status = kpti_view_add_tree(view);
    free(m.before);
    free(m.starts);
    kpti_u64_map_free(&m.linked);
    return status;
}

void kpti_view_free(kpti_view *view)
{
    free(view->rows);
    free(view->kernels);
    view->rows = NULL;
    view->kernels = NULL;
}
