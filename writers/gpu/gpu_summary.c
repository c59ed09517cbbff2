#include "writers/gpu/gpu_summary.h"

#include <string.h>

/* One piece of work on a device. */
typedef struct piece {
    int64_t start_ns;
    int64_t end_ns;
    uint32_t device;
    uint32_t text;
    uint32_t stack;
    uint32_t kind;
    const kpti_gpu_launch
        *backward; /* its launch, if autograd launched it without Python; else NULL */
} piece;

typedef struct pieces {
    piece *items;
    uint32_t capacity;
    uint32_t count;
} pieces;

static const kpti_gpu_launch *backward_of(kpti_gpu_launches *launches, const kpti_gpu_entry *e)
{
    const kpti_gpu_launch *launch =
        launches && !e->stack ? kpti_gpu_launch_of(launches, &e->event) : NULL;
    return launch && launch->is_backward ? launch : NULL;
}

static kpt_status gather(pieces *p, const kpti_heap *heap, const kpti_gpu_log *log,
                         kpti_gpu_launches *launches)
{
    kpti_gpu_cursor cursor = {.log = log};
    const kpti_gpu_entry *e;
    kpt_status status = KPT_OK;
    while (status == KPT_OK && (e = kpti_gpu_next(&cursor))) {
        if (!kpti_gpu_is_work(e->event.kind)) continue;
        status = kpti_array_reach(heap, &p->items, &p->capacity, p->count, sizeof *p->items);
        if (status != KPT_OK) break;
        p->items[p->count++] =
            (piece){e->event.start_ns, e->event.end_ns, e->event.device,         e->text,
                    e->stack,          e->event.kind,   backward_of(launches, e)};
    }
    return status;
}

static int by_device_and_time(const void *a, const void *b)
{
    const piece *one = a;
    const piece *two = b;
    if (one->device != two->device) return one->device < two->device ? -1 : 1;
    return (one->start_ns > two->start_ns) - (one->start_ns < two->start_ns);
}

static int by_time_spent(const void *a, const void *b)
{
    const kpti_gpu_row *one = a;
    const kpti_gpu_row *two = b;
    if (one->total_ns != two->total_ns) return one->total_ns > two->total_ns ? -1 : 1;
    if (one->is_backward != two->is_backward) return one->is_backward ? 1 : -1;
    return (one->name > two->name) - (one->name < two->name);
}

/* --- rows ------------------------------------------------------------------------------------- */

typedef struct rows {
    kpti_gpu_row **items;
    uint32_t *capacity;
    uint32_t *count;
    kpti_u64_map numbers; /* the value is the index of the row + 1 */
} rows;

/* A row of a forward function. */
static kpti_gpu_row backward_row(const kpti_gpu_launch *launch, uint64_t *key)
{
    *key = kpti_text_key(launch->forward) >> 1 | UINT64_C(1) << 62;
    return (kpti_gpu_row){.is_backward = 1, .forward = launch->forward};
}

/* Adds P to the row that KEY has, or makes it of MADE. */
static kpt_status add_to_row(const kpti_heap *heap, rows *r, uint64_t key, const kpti_gpu_row *made,
                             const piece *p)
{
    uint32_t *place = kpti_u64_map_at(&r->numbers, key);
    const uint64_t ns = kpti_gpu_ns(p->start_ns, p->end_ns);
    kpti_gpu_row *row;
    kpt_status status;
    if (!place) return KPT_E_MEMORY;
    if (!*place) {
        status = kpti_array_reach(heap, r->items, r->capacity, *r->count, sizeof **r->items);
        if (status != KPT_OK) return status;
        (*r->items)[*r->count] = *made;
        (*r->items)[*r->count].kind = p->kind;
        *place = ++*r->count;
    }
    row = &(*r->items)[*place - 1];
    row->count++;
    row->total_ns += ns;
    if (ns > row->max_ns) row->max_ns = ns;
    return KPT_OK;
}

/* Finds the node that represents a line: the first node with this function, file and line, whatever its
 * callers. *LINE is 0 if there is no stack. */
static kpt_status line_of(const kpti_gpu_log *log, kpti_u64_map *lines, uint32_t stack,
                          uint32_t *line)
{
    const kpti_gpu_node *node = kpti_gpu_own_frame(log, stack);
    uint32_t parts[3];
    uint32_t *known;
    *line = 0;
    if (!node) return KPT_OK;
    parts[0] = node->function;
    parts[1] = node->file;
    parts[2] = node->line;
    known = kpti_u64_map_at(lines, kpti_text_key((kpt_str){(const char *)parts, sizeof parts}));
    if (!known) return KPT_E_MEMORY;
    if (!*known) *known = (uint32_t)(node - log->nodes);
    *line = *known;
    return KPT_OK;
}

static kpt_status add_rows(kpti_gpu_report *r, const kpti_gpu_log *log, const pieces *all)
{
    rows names = {&r->names, &r->name_capacity, &r->name_count, {.heap = r->heap}};
    rows lines = {&r->lines, &r->line_capacity, &r->line_count, {.heap = r->heap}};
    kpti_u64_map nodes = {.heap = r->heap};
    kpt_status status = KPT_OK;
    for (uint32_t i = 0; i < all->count && status == KPT_OK; i++) {
        const piece *p = &all->items[i];
        kpti_gpu_row made = {.name = p->text};
        uint64_t key = p->text;
        status = add_to_row(&r->heap, &names, key, &made, p);
        if (status == KPT_OK) status = line_of(log, &nodes, p->stack, &made.name);
        key = made.name;
        if (p->backward) made = backward_row(p->backward, &key);
        if (status == KPT_OK) status = add_to_row(&r->heap, &lines, key, &made, p);
    }
    kpti_u64_map_free(&names.numbers);
    kpti_u64_map_free(&lines.numbers);
    kpti_u64_map_free(&nodes);
    if (r->name_count) qsort(r->names, r->name_count, sizeof *r->names, by_time_spent);
    if (r->line_count) qsort(r->lines, r->line_count, sizeof *r->lines, by_time_spent);
    return status;
}

/* --- devices ---------------------------------------------------------------------------------- */

/* Keeps the largest gaps, sorted. */
static void add_gap(kpti_gpu_busy *d, kpti_gpu_gap gap)
{
    uint32_t i = d->gap_count < KPTI_GPU_GAPS ? d->gap_count++ : KPTI_GPU_GAPS;
    const uint64_t ns = kpti_gpu_ns(gap.start_ns, gap.end_ns);
    while (i > 0 && kpti_gpu_ns(d->gaps[i - 1].start_ns, d->gaps[i - 1].end_ns) < ns) {
        if (i < KPTI_GPU_GAPS) d->gaps[i] = d->gaps[i - 1];
        i--;
    }
    if (i < KPTI_GPU_GAPS) d->gaps[i] = gap;
}

/* The gap from START_NS until P begins. */
static kpti_gpu_gap gap_before(const piece *p, int64_t start_ns)
{
    kpti_gpu_gap gap = {start_ns, p->start_ns, p->text, p->stack, p->backward != NULL, {"", 0}};
    if (p->backward) gap.forward = p->backward->forward;
    return gap;
}

static void add_piece(kpti_gpu_busy *d, const piece *p)
{
    const int64_t from = p->start_ns > d->last_ns ? p->start_ns : d->last_ns;
    d->count++;
    d->kernels += p->kind == KPT_GPU_KERNEL;
    if (p->start_ns > d->last_ns) add_gap(d, gap_before(p, d->last_ns));
    if (p->end_ns <= from) return;
    d->busy_ns += kpti_gpu_ns(from, p->end_ns);
    d->last_ns = p->end_ns;
}

static kpt_status add_devices(kpti_gpu_report *r, const pieces *all)
{
    kpti_gpu_busy *d = NULL;
    for (uint32_t i = 0; i < all->count; i++) {
        const piece *p = &all->items[i];
        if (!d || d->device != p->device) {
            kpt_status status = kpti_array_reach(&r->heap, &r->devices, &r->device_capacity,
                                                 r->device_count, sizeof *r->devices);
            if (status != KPT_OK) return status;
            d = &r->devices[r->device_count++];
            *d = (kpti_gpu_busy){
                .device = p->device, .first_ns = p->start_ns, .last_ns = p->start_ns};
        }
        add_piece(d, p);
    }
    return KPT_OK;
}

kpt_status kpti_gpu_report_make(kpti_gpu_report *r, const kpti_gpu_log *log,
                                kpti_gpu_launches *launches)
{
    pieces all = {NULL, 0, 0};
    kpt_status status = gather(&all, &r->heap, log, launches);
    if (all.count) qsort(all.items, all.count, sizeof *all.items, by_device_and_time);
    if (status == KPT_OK) status = add_rows(r, log, &all);
    if (status == KPT_OK) status = add_devices(r, &all);
    kpti_heap_give(&r->heap, all.items, all.capacity * sizeof *all.items);
    return status;
}

void kpti_gpu_report_free(kpti_gpu_report *r)
{
    kpti_heap_give(&r->heap, r->names, r->name_capacity * sizeof *r->names);
    kpti_heap_give(&r->heap, r->lines, r->line_capacity * sizeof *r->lines);
    kpti_heap_give(&r->heap, r->devices, r->device_capacity * sizeof *r->devices);
    r->names = r->lines = NULL;
    r->devices = NULL;
    r->name_capacity = r->line_capacity = r->device_capacity = 0;
    r->name_count = r->line_count = r->device_count = 0;
}
