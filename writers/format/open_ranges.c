#include "writers/format/open_ranges.h"

#include "core/base/assert.h"

typedef struct open_range {
    kpt_activity begin;  /* as a call; value0 is the range's number */
    uint32_t after_span; /* number of the last span of the thread that began before it; 0: none */
} open_range;

typedef struct kpti_thread_ranges {
    open_range *open;
    uint32_t capacity;
    uint32_t count;
    uint32_t last_span; /* number of the thread's last span; numbers grow with time */
} thread_ranges;

static kpt_status reach(kpti_open_ranges *r, uint32_t thread)
{
    return kpti_array_reach(&r->heap, &r->threads, &r->thread_capacity, thread, sizeof *r->threads);
}

kpt_status kpti_open_ranges_begin(kpti_open_ranges *r, kpt_activity *begin)
{
    thread_ranges *t;
    kpt_status status = reach(r, begin->thread);
    if (status != KPT_OK) return status;
    t = &r->threads[begin->thread];
    status = kpti_array_reach(&r->heap, &t->open, &t->capacity, t->count, sizeof *t->open);
    if (status != KPT_OK) return status;
    begin->id = KPTI_RANGE_ID;
    begin->phase = KPT_PHASE_BEGIN;
    t->open[t->count++] = (open_range){*begin, t->last_span};
    return KPT_OK;
}

static thread_ranges *ranges_of(const kpti_open_ranges *r, uint32_t thread)
{
    return thread < r->thread_capacity && r->threads[thread].count ? &r->threads[thread] : NULL;
}

static void pop(thread_ranges *t, int64_t ns, uint32_t flags, kpt_activity *out)
{
    kpti_assert(t->count);
    *out = t->open[--t->count].begin;
    out->value0 = t->open[t->count].after_span;
    out->phase = KPT_PHASE_COMPLETE;
    out->end_ns = ns > out->start_ns ? ns : out->start_ns;
    out->flags |= flags;
}

static int is_open(const thread_ranges *t, uint64_t number)
{
    for (uint32_t i = t->count; i-- > 0;)
        if (t->open[i].begin.value0 == number) return 1;
    return 0;
}

int kpti_open_ranges_end(kpti_open_ranges *r, const kpt_activity *end, kpt_activity *out)
{
    thread_ranges *t = ranges_of(r, end->thread);
    if (!t || !is_open(t, end->value0)) return 0;
    if (t->open[t->count - 1].begin.value0 == end->value0)
        pop(t, end->start_ns, end->flags, out);
    else
        pop(t, end->start_ns, KPT_ACTIVITY_CLAMPED, out);
    return 1;
}

kpt_status kpti_open_ranges_span(kpti_open_ranges *r, const kpt_activity *point, uint32_t number)
{
    kpt_status status = reach(r, point->thread);
    if (status == KPT_OK) r->threads[point->thread].last_span = number;
    return status;
}

int kpti_open_ranges_span_end(kpti_open_ranges *r, const kpt_activity *point, uint32_t number,
                              kpt_activity *out)
{
    thread_ranges *t = ranges_of(r, point->thread);
    if (!t || t->open[t->count - 1].after_span < number) return 0;
    /* Calls inside the range are still open: the span does not end as a frame here. */
    if (t->open[t->count - 1].begin.parent_id != point->parent_id) return 0;
    pop(t, point->start_ns, KPT_ACTIVITY_CLAMPED, out);
    return 1;
}

void kpti_open_ranges_free(kpti_open_ranges *r)
{
    for (uint32_t i = 0; i < r->thread_capacity; i++)
        kpti_heap_give(&r->heap, r->threads[i].open,
                       r->threads[i].capacity * sizeof *r->threads[i].open);
    kpti_heap_give(&r->heap, r->threads, r->thread_capacity * sizeof *r->threads);
    *r = (kpti_open_ranges){.heap = r->heap};
}
