#include "core/recording/delivery/call_outcomes.h"

#include "core/base/assert.h"
#include "core/base/host_heap.h"

enum { BLOCK = 128 };

static uint64_t pages_for(uint64_t calls)
{
    return (calls + KPTI_OUTCOME_PAGE - 1) / KPTI_OUTCOME_PAGE;
}

/* Returns how many calls page P has space for. The last page is only as long as the track needs. */
static uint64_t page_calls(const kpti_call_outcomes *o, uint64_t p)
{
    if (o->in_parts) return KPTI_OUTCOME_PAGE;
    const uint64_t left = o->max_calls - p * KPTI_OUTCOME_PAGE;
    return left < KPTI_OUTCOME_PAGE ? left : KPTI_OUTCOME_PAGE;
}

void kpti_call_outcomes_free(kpti_call_outcomes *o)
{
    if (!o->env) return;
    for (uint64_t p = 0; o->pages && p < o->page_count; p++) {
        kpti_free(o->env, o->pages[p].flags, page_calls(o, p));
        kpti_free(o->env, o->pages[p].ends, page_calls(o, p) * sizeof(int64_t));
    }
    kpti_free(o->env, o->pages, o->page_count * sizeof *o->pages);
    kpti_free(o->env, o->gcs, o->gc_capacity * sizeof *o->gcs);
    kpti_free(o->env, o->ranges, o->range_capacity * sizeof *o->ranges);
    memset(o, 0, sizeof *o);
}

/* Returns the page of call INDEX, allocated if needed, or NULL if there is no memory. */
static kpti_outcome_page *page_of(kpti_call_outcomes *o, uint64_t index)
{
    const uint64_t p = index / KPTI_OUTCOME_PAGE;
    kpti_outcome_page *page;
    if (!kpti_host_array_reserve(o->env, &o->pages, &o->page_count, p + 1, sizeof *o->pages))
        return NULL;
    page = &o->pages[p];
    if (!page->flags) page->flags = kpti_alloc(o->env, page_calls(o, p));
    if (o->with_ends && !page->ends)
        page->ends = kpti_alloc(o->env, page_calls(o, p) * sizeof(int64_t));
    return page->flags && (page->ends || !o->with_ends) ? page : NULL;
}

static int add_gc(kpti_call_outcomes *o, const kpt_activity *a)
{
    if (!kpti_host_array_reserve(o->env, &o->gcs, &o->gc_capacity, o->gc_count + 1, sizeof *o->gcs))
        return 0;
    o->gcs[o->gc_count++] = (kpti_gc_counts){a->value1, a->value2};
    return 1;
}

/* Adds the begin of a range. */
static int add_range(kpti_call_outcomes *o, const kpt_activity *a)
{
    if (!kpti_host_array_reserve(o->env, &o->ranges, &o->range_capacity, o->range_count + 1,
                                 sizeof *o->ranges))
        return 0;
    o->ranges[o->range_count++] = (kpti_range_outcome){a->start_ns, (uint32_t)a->value0, 1};
    return 1;
}

/* Sets the end of the range that is open with the number of A. Usually it is the last one. */
static void end_range(kpti_call_outcomes *o, const kpt_activity *a)
{
    for (uint64_t i = o->range_count; i-- > o->first_open;) {
        kpti_range_outcome *const range = &o->ranges[i];
        if (!range->is_open || range->number != a->value0) continue;
        range->is_open = 0;
        range->end_ns = a->start_ns;
        break;
    }
    while (o->first_open < o->range_count && !o->ranges[o->first_open].is_open)
        o->first_open++;
}

_Static_assert((uint32_t)KPT_ACTIVITY_CONTINUED < (uint32_t)KPTI_OUTCOME_DELIVERED,
               "the flags fit into a byte, beside it");

/* Adds a call of the first pass. Its id is its index + 1. */
static int add(kpti_call_outcomes *o, const kpti_batcher *b, kpt_activity *a)
{
    const uint64_t index = a->id - 1;
    kpti_outcome_page *page = page_of(o, index);
    kpti_assert(a->id && (o->in_parts || index < o->max_calls));
    if (!page) return 0;
    if (o->with_ends && a->name == b->gc_name && !add_gc(o, a)) return 0;
    if (!kpti_batcher_wants(b, a->start_ns)) return 1;
    kpti_batcher_cut(b, &a->end_ns, &a->flags);
    if ((uint64_t)a->end_ns - (uint64_t)a->start_ns < b->recording->min_duration_ns) return 1;
    page->flags[index % KPTI_OUTCOME_PAGE] = (uint8_t)(a->flags | KPTI_OUTCOME_DELIVERED);
    if (o->with_ends) page->ends[index % KPTI_OUTCOME_PAGE] = a->end_ns;
    return 1;
}

/* The same for an activity of any kind. */
static int add_any(kpti_call_outcomes *o, const kpti_batcher *b, kpt_activity *a)
{
    if (a->phase != KPT_PHASE_COMPLETE) return add(o, b, a);
    if (a->name == b->range_begin_name) return add_range(o, a);
    end_range(o, a);
    return 1;
}

static int add_all(kpti_call_outcomes *o, const kpti_batcher *b, kpti_replay *replay)
{
    const unsigned what = KPTI_ENDS | (o->with_ends ? b->points & KPTI_RANGES : 0);
    kpt_activity activities[BLOCK];
    kpti_filled left = KPTI_FILLED_MORE;
    int fine = 1;
    while (fine && left == KPTI_FILLED_MORE) {
        uint32_t count;
        left = kpti_replay_fill(replay, what, activities, BLOCK, &count);
        for (uint32_t i = 0; fine && i < count; i++)
            fine = add_any(o, b, &activities[i]);
    }
    return fine && left == KPTI_FILLED_ALL;
}

int kpti_call_outcomes_prepass(kpti_call_outcomes *o, kpti_batcher *b, uint32_t track,
                               int with_ends)
{
    const kpti_track t = kpti_recording_track(b->recording, track);
    const kpti_chunk *chunk;
    kpti_chunk space;
    kpti_replay *replay;
    int fine;
    memset(o, 0, sizeof *o);
    o->env = b->env;
    o->with_ends = with_ends;
    o->in_parts = b->parts && t.spans;
    /* Each call has an event where it begins. */
    for (const kpti_chunk *place = t.chunks; place; place = chunk->next) {
        chunk = kpti_recording_chunk(b->recording, place, &space);
        o->max_calls += chunk->count;
    }
    if (!o->max_calls) return 1;
    o->page_count = pages_for(o->max_calls);
    o->pages = kpti_alloc(o->env, o->page_count * sizeof *o->pages);
    replay = o->pages ? kpti_batcher_first_pass(b, track) : NULL;
    if (!replay) return 0;
    fine = add_all(o, b, replay);
    kpti_replay_free(replay);
    return fine;
}
