#include "writers/gpu/gpu_launches.h"

#include <stdlib.h>
#include <string.h>

static int has_number(const kpt_gpu_event *event)
{
    return event->correlation && event->correlation != UINT64_MAX;
}

static kpt_status add_calls(kpti_gpu_launches *l, const kpti_gpu_log *log)
{
    kpti_gpu_cursor cursor = {.log = log};
    const kpti_gpu_entry *e;
    kpt_status status = KPT_OK;
    while (status == KPT_OK && (e = kpti_gpu_next(&cursor))) {
        if (!kpti_gpu_is_call(e->event.kind) || !has_number(&e->event)) continue;
        status = kpti_array_reach(&l->heap, &l->items, &l->capacity, l->count, sizeof *l->items);
        if (status == KPT_OK)
            l->items[l->count++] = (kpti_gpu_launch){.os_tid = e->event.os_tid,
                                                     .start_ns = e->event.start_ns,
                                                     .correlation = e->event.correlation};
    }
    return status;
}

static int by_thread_and_time(const void *a, const void *b)
{
    const kpti_gpu_launch *one = a;
    const kpti_gpu_launch *two = b;
    if (one->os_tid != two->os_tid) return one->os_tid < two->os_tid ? -1 : 1;
    return (one->start_ns > two->start_ns) - (one->start_ns < two->start_ns);
}

/* Of several calls with one number, the outermost is the one, which begins first. */
static kpt_status number_calls(kpti_gpu_launches *l)
{
    for (uint32_t i = 0; i < l->count; i++) {
        uint32_t *number = kpti_u64_map_at(&l->number_of, l->items[i].correlation);
        if (!number) return KPT_E_MEMORY;
        if (!*number) *number = i + 1;
    }
    return KPT_OK;
}

kpti_gpu_launch *kpti_gpu_launch_of(kpti_gpu_launches *l, const kpt_gpu_event *event)
{
    const uint32_t *number =
        l->count && has_number(event) ? kpti_u64_map_at(&l->number_of, event->correlation) : NULL;
    return number && *number ? &l->items[*number - 1] : NULL;
}

kpt_status kpti_gpu_launches_make(kpti_gpu_launches *l, const kpti_gpu_log *log)
{
    kpti_gpu_log unshifted = *log; /* as the times of the recording's operators */
    kpti_gpu_cursor cursor = {.log = &unshifted};
    const kpti_gpu_entry *e;
    kpti_gpu_launch *launch;
    kpt_status status;
    unshifted.shift = NULL;
    l->number_of.heap = l->heap;
    status = add_calls(l, &unshifted);
    if (status != KPT_OK) return status;
    if (l->count) qsort(l->items, l->count, sizeof *l->items, by_thread_and_time);
    status = number_calls(l);
    while (status == KPT_OK && l->count && (e = kpti_gpu_next(&cursor))) {
        if (!kpti_gpu_is_work(e->event.kind)) continue;
        launch = kpti_gpu_launch_of(l, &e->event);
        if (launch) launch->work_ns += kpti_gpu_ns(e->event.start_ns, e->event.end_ns);
    }
    return status;
}

void kpti_gpu_launches_free(kpti_gpu_launches *l)
{
    for (uint32_t i = 0; i < l->range_count; i++)
        kpti_heap_give(&l->heap, l->ranges[i].name, l->ranges[i].name_size);
    kpti_heap_give(&l->heap, l->ranges, l->range_capacity * sizeof *l->ranges);
    kpti_heap_give(&l->heap, l->items, l->capacity * sizeof *l->items);
    kpti_u64_map_free(&l->number_of);
    *l = (kpti_gpu_launches){.heap = l->heap};
}

/* Returns the first launch that is not before START_NS on the thread. */
static kpti_gpu_launch *first_from(const kpti_gpu_launches *l, uint64_t os_tid, int64_t start_ns)
{
    const kpti_gpu_launch key = {.os_tid = os_tid, .start_ns = start_ns};
    uint32_t low = 0;
    uint32_t high = l->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (by_thread_and_time(&l->items[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return l->items ? l->items + low : NULL;
}

kpti_gpu_launch *kpti_gpu_launches_of_thread(const kpti_gpu_launches *l, uint64_t os_tid,
                                             kpti_gpu_launch **end)
{
    *end = os_tid == UINT64_MAX ? first_from(l, os_tid, INT64_MAX)
                                : first_from(l, os_tid + 1, INT64_MIN);
    return first_from(l, os_tid, INT64_MIN);
}

kpt_status kpti_gpu_launches_add_range(kpti_gpu_launches *l, kpt_str name, uint32_t outer,
                                       uint32_t *number)
{
    kpti_gpu_range made = {NULL, (uint32_t)name.size, outer, 0, 0, 0};
    kpt_status status = kpti_array_reach(&l->heap, &l->ranges, &l->range_capacity, l->range_count,
                                         sizeof *l->ranges);
    if (status != KPT_OK) return status;
    if (name.size) {
        made.name = kpti_heap_take(&l->heap, name.size);
        if (!made.name) return KPT_E_MEMORY;
        memcpy(made.name, name.data, name.size);
    }
    l->ranges[l->range_count] = made;
    *number = ++l->range_count;
    return KPT_OK;
}

void kpti_gpu_launches_shift(kpti_gpu_launches *l, const kpti_clock_shift *shift)
{
    for (uint32_t i = 0; i < l->count; i++)
        l->items[i].start_ns = kpti_shifted(shift, l->items[i].start_ns);
}

static uint32_t claim(const kpti_gpu_launches *l, uint64_t os_tid, int64_t start_ns, int64_t end_ns,
                      uint64_t external, int replaces)
{
    kpti_gpu_launch *launch;
    uint32_t claimed = 0;
    if (!l->count) return 0;
    for (launch = first_from(l, os_tid, start_ns); launch < l->items + l->count; launch++) {
        if (launch->os_tid != os_tid || launch->start_ns >= end_ns) break;
        if (launch->external && !replaces) continue;
        launch->external = external;
        claimed++;
    }
    return claimed;
}

uint32_t kpti_gpu_launches_claim(const kpti_gpu_launches *l, uint64_t os_tid, int64_t start_ns,
                                 int64_t end_ns, uint64_t external)
{
    return claim(l, os_tid, start_ns, end_ns, external, 0);
}

void kpti_gpu_launches_claim_inner(const kpti_gpu_launches *l, uint64_t os_tid, int64_t start_ns,
                                   int64_t end_ns, uint64_t external)
{
    (void)claim(l, os_tid, start_ns, end_ns, external, 1);
}
