#include "hosts/torch/exporter/events/event_sums.h"

#include <math.h>

#include "hosts/torch/exporter/events/event_flops.h"

/* --- Python's sum() --------------------------------------------------------------------------- */

typedef struct sum {
    kpti_time total;
    double rest; /* what rounding lost */
    int is_exact;
} sum;

static void sum_add(sum *s, kpti_time time)
{
    double both;
    if (!time.is_float) return; /* a 0 */
    if (!s->total.is_float) {
        s->total = time;
        return;
    }
    both = s->total.us + time.us;
    if (s->is_exact) {
        if (fabs(s->total.us) >= fabs(time.us))
            s->rest += (s->total.us - both) + time.us;
        else
            s->rest += (time.us - both) + s->total.us;
    }
    s->total.us = both;
}

static kpti_time sum_of(const sum *s)
{
    kpti_time total = s->total;
    if (s->rest != 0 && isfinite(s->rest)) total.us += s->rest;
    return total;
}

static kpti_time plus(kpti_time a, kpti_time b)
{
    return (kpti_time){a.us + b.us, a.is_float || b.is_float};
}

static kpti_time minus(kpti_time a, kpti_time b)
{
    return (kpti_time){a.us - b.us, a.is_float || b.is_float};
}

/* --- the times of rows ------------------------------------------------------------------------ */

static kpti_time kernels_of(const kpti_view *view, const kpti_row *row)
{
    sum s = {.is_exact = view->options.sums_exactly};
    for (uint32_t i = row->first_kernel; i; i = view->kernels[i - 1].next)
        sum_add(&s, (kpti_time){kpti_row_us(view, &view->rows[view->kernels[i - 1].row]), 1});
    return sum_of(&s);
}

static void find_times(kpti_sums *sums, uint32_t index)
{
    const kpti_view *const view = sums->view;
    const kpti_row *const row = &view->rows[index];
    const int is_async = kpti_row_is_async(view, row);
    const kpti_time own = {kpti_row_us(view, row), 1};
    kpti_row_times *const times = &sums->times[index];
    sum cpu = {.is_exact = view->options.sums_exactly};
    sum device = cpu;
    if (kpti_event_is_on_device(kpti_view_event(view, row))) {
        if (view->options.has_device) times->device = times->self_device = own;
        return;
    }
    times->cpu = own;
    if (is_async) return;
    times->self_cpu_bytes = row->cpu_bytes;
    times->self_device_bytes = row->device_bytes;
    for (uint32_t i = row->first_child; i; i = view->rows[i - 1].next) {
        const kpti_row_times *const child = &sums->times[i - 1];
        sum_add(&cpu, child->cpu);
        sum_add(&device, child->device);
        times->self_cpu_bytes -= view->rows[i - 1].cpu_bytes;
        times->self_device_bytes -= view->rows[i - 1].device_bytes;
    }
    times->self_cpu = minus(own, sum_of(&cpu));
    if (!view->options.has_device) return;
    times->device = plus(kernels_of(view, row), sum_of(&device));
    times->self_device = minus(times->device, sum_of(&device));
}

static kpt_status find_flops(kpti_sums *sums)
{
    const kpti_event_table *const t = sums->view->table;
    sums->flops = calloc((size_t)sums->view->count + 1, sizeof *sums->flops);
    if (!sums->flops) return KPT_E_MEMORY;
    for (uint32_t i = 0; i < sums->view->count; i++) {
        const kpti_event *const event = kpti_view_event(sums->view, &sums->view->rows[i]);
        if (event->inputs)
            sums->flops[i] =
                kpti_event_flops(t->names.texts[event->name], t->inputs[event->inputs]);
    }
    return KPT_OK;
}

kpt_status kpti_sums_make(kpti_sums *sums, int with_flops)
{
    sums->times = calloc((size_t)sums->view->count + 1, sizeof *sums->times);
    if (!sums->times) return KPT_E_MEMORY;
    for (uint32_t i = sums->view->count; i-- > 0;) /* children before their parent */
        find_times(sums, i);
    return with_flops ? find_flops(sums) : KPT_OK;
}

void kpti_sums_free(kpti_sums *sums)
{
    free(sums->times);
    free(sums->flops);
    free(sums->averages);
}

/* --- groups ----------------------------------------------------------------------------------- */

typedef struct grouper {
    kpti_sums *sums;
    const kpti_grouping *grouping;
    kpti_u64_map by_name;
    kpti_u64_map by_shapes; /* by the group of the name, and the shapes */
    kpti_u64_map by_stack;  /* by the group before, and the stack */
    kpti_u64_map prefixes;  /* by the prefix before, and a name */
    uint32_t *prefix_of;    /* by stack: its innermost names, + 1 */
    uint32_t *size_of;      /* by stack: how many these are */
    uint32_t numbers[3];    /* of by_shapes, by_stack, prefixes */
} grouper;

enum { SHAPES, STACK, PREFIXES };

/* Returns the number of KEY in MAP, or 0 if there is no memory. */
static uint32_t number_of(kpti_u64_map *map, uint64_t key, uint32_t *last)
{
    uint32_t *const number = kpti_u64_map_at(map, key);
    if (number && !*number) *number = ++*last;
    return number ? *number : 0;
}

uint32_t kpti_view_frame(const kpti_view *view, uint32_t stack)
{
    const kpti_event_table *const t = view->table;
    while (stack && view->options.flags[t->stacks[stack].name] & KPTI_NAME_NOT_IN_STACK)
        stack = t->stacks[stack].caller;
    return stack;
}

/* Returns the number + 1 of the innermost names of STACK, or 0 if there is no memory. */
static uint32_t prefix_of(grouper *g, uint32_t stack)
{
    const kpti_view *const view = g->sums->view;
    uint32_t prefix = 0;
    uint32_t size = 0;
    if (g->prefix_of[stack]) return g->prefix_of[stack];
    for (uint32_t at = kpti_view_frame(view, stack); at && size < g->grouping->stack_size;
         at = kpti_view_frame(view, view->table->stacks[at].caller), size++) {
        prefix = number_of(&g->prefixes, (uint64_t)prefix << 32 | view->table->stacks[at].name,
                           &g->numbers[PREFIXES]);
        if (!prefix) return 0;
    }
    g->size_of[stack] = size;
    return g->prefix_of[stack] = prefix + 1;
}

/* Returns the average of ROW, or NULL if there is no memory. */
static kpti_average *average_of(grouper *g, uint32_t index)
{
    kpti_sums *const sums = g->sums;
    const kpti_view *const view = sums->view;
    const kpti_row *const row = &view->rows[index];
    const kpti_event *const event = kpti_view_event(view, row);
    const int is_annotation =
        event->kind == KPTI_EVENT_ANNOTATION || event->kind == KPTI_EVENT_GPU_ANNOTATION;
    uint64_t key = (uint64_t)view->options.keys[event->name] << 2 |
                   (uint64_t)(kpti_event_is_on_device(event) != 0) << 1 | (uint64_t)is_annotation;
    kpti_heap heap = view->table->heap;
    uint32_t *number;
    if (g->grouping->shapes) {
        /* The shapes' numbers are those of texts, and keys of names are fewer than 2^30. */
        const uint32_t shapes = number_of(
            &g->by_shapes, key << 32 | g->grouping->shapes[event->inputs], &g->numbers[SHAPES]);
        if (!shapes) return NULL;
        key = shapes;
    }
    if (g->grouping->stack_size) {
        const uint32_t prefix = prefix_of(g, row->stack);
        key = prefix ? number_of(&g->by_stack, key << 32 | prefix, &g->numbers[STACK]) : 0;
        if (!key) return NULL;
    }
    number = kpti_u64_map_at(&g->by_name, key);
    if (!number) return NULL;
    if (*number) return &sums->averages[*number - 1];
    if (kpti_array_reach(&heap, &sums->averages, &sums->capacity, sums->count,
                         sizeof *sums->averages) != KPT_OK)
        return NULL;
    *number = ++sums->count;
    sums->averages[sums->count - 1] = (kpti_average){
        .row = index, .stack_size = g->grouping->stack_size ? g->size_of[row->stack] : 0};
    return &sums->averages[sums->count - 1];
}

static void add_to(kpti_average *average, const kpti_sums *sums, uint32_t index)
{
    const kpti_row *const row = &sums->view->rows[index];
    const kpti_row_times *const times = &sums->times[index];
    kpti_row_times *const total = &average->times;
    total->cpu = plus(total->cpu, times->cpu);
    total->self_cpu = plus(total->self_cpu, times->self_cpu);
    total->device = plus(total->device, times->device);
    total->self_device = plus(total->self_device, times->self_device);
    total->self_cpu_bytes += times->self_cpu_bytes;
    total->self_device_bytes += times->self_device_bytes;
    average->cpu_bytes += row->cpu_bytes;
    average->device_bytes += row->device_bytes;
    if (sums->flops) average->flops += sums->flops[index];
    average->count++;
}

kpt_status kpti_sums_group(kpti_sums *sums, const kpti_grouping *grouping)
{
    const size_t stacks = (size_t)sums->view->table->stack_count + 1;
    grouper g = {.sums = sums, .grouping = grouping};
    kpt_status status = KPT_OK;
    if (grouping->stack_size) {
        g.prefix_of = calloc(stacks, sizeof *g.prefix_of);
        g.size_of = calloc(stacks, sizeof *g.size_of);
        if (!g.prefix_of || !g.size_of) status = KPT_E_MEMORY;
    }
    for (uint32_t i = 0; i < sums->view->count && status == KPT_OK; i++) {
        const kpti_event *const event = kpti_view_event(sums->view, &sums->view->rows[i]);
        kpti_average *average;
        if (event->kind == KPTI_EVENT_PYTHON && !grouping->has_calls) continue;
        average = average_of(&g, i);
        if (average)
            add_to(average, sums, i);
        else
            status = KPT_E_MEMORY;
    }
    free(g.prefix_of);
    free(g.size_of);
    kpti_u64_map_free(&g.by_name);
    kpti_u64_map_free(&g.by_shapes);
    kpti_u64_map_free(&g.by_stack);
    kpti_u64_map_free(&g.prefixes);
    return status;
}

kpt_status kpti_sums_total(kpti_sums *sums)
{
    kpti_heap heap = sums->view->table->heap;
    if (kpti_array_reach(&heap, &sums->averages, &sums->capacity, sums->count,
                         sizeof *sums->averages) != KPT_OK)
        return KPT_E_MEMORY;
    sums->averages[sums->count++] = (kpti_average){0};
    for (uint32_t i = 0; i < sums->view->count; i++) {
        add_to(&sums->averages[sums->count - 1], sums, i);
        sums->averages[sums->count - 1].row = i;
    }
    return KPT_OK;
}

kpti_time kpti_sums_self_cpu(const kpti_sums *sums)
{
    sum s = {.is_exact = sums->view->options.sums_exactly};
    for (uint32_t i = 0; i < sums->view->count; i++)
        sum_add(&s, sums->times[i].self_cpu);
    return sum_of(&s);
}
