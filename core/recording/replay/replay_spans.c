/* replay_spans.c: see replay_spans.h.
 *
 * In parts, a call that was cut is suspended and continues at the next event of its thread, not at the cut: the
 * host's own time of the span is between the two, so a part that began at the cut would cross the span. */
#include "core/recording/replay/replay_spans.h"

#include "core/base/assert.h"

/* Starts to resume the suspended calls up to LAST: their next parts begin at NS. */
static void resume(kpti_replay *r, kpti_call_record *last, int64_t ns)
{
    kpti_assert(last <= r->stack.top && last > r->suspended_above);
    r->resume_last = last;
    r->resume_ns = ns;
    r->until = 0;
}

/* Starts to cut the calls above FLOOR, one per step. Of the suspended calls, those that last are resumed here;
 * the others stay suspended. */
static void cut_above(kpti_replay *r, kpti_call_record *floor, int64_t ns)
{
    kpti_call_record *const open = r->suspended_above ? r->suspended_above : r->stack.top;
    kpti_assert(!r->closing && !r->resume_last && floor <= r->stack.top);
    r->floor = floor;
    r->cutting = open > floor ? open : floor;
    r->close_ns = ns;
    r->until = 0;
    if (open < floor) resume(r, floor, ns);
}

/* A span of the host begins: cuts the calls that end before it does. */
kpti_step kpti_replay_begin_span(kpti_replay *r, uint32_t number)
{
    kpti_call_record *floor;
    if (r->plan) {
        if (!kpti_span_clamps_scan(r->plan, number, r->next_id)) return KPTI_STEP_NO_MEMORY;
    } else {
        if (!kpti_span_clamps_apply(&r->clamps, r->spans++, number, &r->stack, &floor))
            return KPTI_STEP_NO_MEMORY;
        cut_above(r, floor, r->times.ns[r->at - r->block_first]);
    }
    r->at++;
    return KPTI_STEP_NONE;
}

/* The span ends: cuts the calls that began within it. */
void kpti_replay_end_span(kpti_replay *r, uint32_t number, int64_t ns)
{
    kpti_call_record *floor;
    if (r->plan) {
        kpti_span_clamps_scan_end(r->plan, number, &r->stack);
    } else {
        floor = kpti_span_clamps_end(&r->clamps, number, &r->stack);
        if (floor)
            cut_above(r, floor, ns);
        else if (r->suspended_above)
            resume(r, r->stack.top, ns);
    }
}

/* Finds where the next far end is due: before the first later event of the block. */
void kpti_replay_find_pause(kpti_replay *r)
{
    const uint64_t *const ticks = r->times.ticks;
    uint32_t at = r->at > r->block_first ? r->at : r->block_first;
    uint64_t due;
    r->pause = r->block_end;
    if (r->far == r->recording->far_end_count) return;
    due = r->recording->cross_thread_ends[r->far].ticks;
    if (due >= r->times.last_ticks) return;
    while (at < r->block_end && ticks[at - r->block_first] <= due)
        at++;
    if (at < r->block_end) r->pause = at;
}

/* Applies the far end that is due. Its time is not before the previous event or the previous far end, and not
 * after the next event, whatever the converter returns. */
kpti_step kpti_replay_far_end(kpti_replay *r, int64_t before_ns, int64_t next_ns)
{
    const kpti_cross_thread_end *cross_thread_end = &r->recording->cross_thread_ends[r->far++];
    int64_t ns = kpti_times_of(&r->times, cross_thread_end->ticks);
    if (ns > next_ns) ns = next_ns;
    if (ns < before_ns) ns = before_ns;
    if (ns < r->far_ns) ns = r->far_ns;
    kpti_assert(ns >= r->far_ns);
    r->far_ns = ns;
    kpti_replay_find_pause(r);
    kpti_replay_go_on(r);
    kpti_replay_end_span(r, cross_thread_end->number, ns);
    return KPTI_STEP_NONE;
}

/* The same among the events of a block. */
kpti_step kpti_replay_far_end_in_block(kpti_replay *r)
{
    const uint32_t at = (r->at < r->block_end ? r->at : r->block_end) - r->block_first;
    const int64_t *const ns = r->times.ns;
    return kpti_replay_far_end(r, at ? ns[at - 1] : r->before_ns,
                               r->block_first + at < r->block_end ? ns[at] : r->times.last_ns);
}

void kpti_replay_end_all_spans(kpti_replay *r)
{
    if (r->plan)
        kpti_span_clamps_scan_end_all(r->plan, &r->stack);
    else
        kpti_span_clamps_end_all(&r->clamps);
}

/* All calls that would cross are cut. The floor and the calls below it last. */
static kpti_step end_cut(kpti_replay *r)
{
    r->cutting = NULL;
    if (r->parts) r->suspended_above = r->floor < r->stack.top ? r->floor : NULL;
    kpti_replay_go_on(r);
    kpti_replay_mark_from(r, r->floor);
    return KPTI_STEP_NONE;
}

static void leave_clamped(kpti_replay *r, kpti_call_record *call)
{
    if (call->key == KPTI_GC_KEY) r->gc_open = 0;
    call->key |= KPTI_GHOST_KEY;
    call->parent_id = call->id;
    call->id = r->floor->id;
    call->depth = r->floor->depth;
}

/* Cuts one call, and suspends it or replaces it by a clamped frame. At the floor, marks the calls that last. */
kpti_step kpti_replay_cut_one(kpti_replay *r, kpti_call_record **record)
{
    kpti_call_record *call = r->cutting--;
    if (call == r->floor) return end_cut(r);
    if (kpti_call_is_clamped(call)) {
        call->id = r->floor->id; /* the call that it referred to is cut as well */
        call->depth = r->floor->depth;
        return KPTI_STEP_NONE;
    }
    r->cut = *call;
    r->cut.end_ns = r->close_ns;
    r->cut.flags |= KPT_ACTIVITY_CLAMPED;
    if (r->parts)
        call->flags = KPT_ACTIVITY_CONTINUED |
                      (call->flags & (KPT_ACTIVITY_WATCHED | KPT_ACTIVITY_BEGAN_BEFORE));
    else
        leave_clamped(r, call);
    *record = &r->cut;
    return KPTI_STEP_END;
}

int kpti_replay_before_event(kpti_replay *r)
{
    const kpti_event event = r->events[r->at];
    const uint32_t kind = kpti_event_kind(event);
    const int64_t ns = r->times.ns[r->at - r->block_first];
    if (kind == KPTI_EVENT_SPAN_BEGIN || kind == KPTI_EVENT_SPAN_END || kind == KPTI_EVENT_EPOCH)
        return 0;
    if (kind == KPTI_EVENT_EXIT && r->stack.top->key == kpti_event_number(event)
                                                            << KPTI_KIND_BITS) {
        r->stack.top--; /* the call returns here, so its last part would take no time */
        r->at++;
    }
    if (r->stack.top > r->suspended_above) {
        resume(r, r->stack.top, ns);
    } else {
        r->suspended_above = NULL;
        kpti_replay_go_on(r);
    }
    return 1;
}

kpti_step kpti_replay_resume_one(kpti_replay *r, kpti_call_record **record)
{
    kpti_call_record *call = ++r->suspended_above;
    call->start_ns = r->resume_ns;
    if (r->parts == KPTI_PARTS_NUMBERED) call->id = r->next_id++;
    if (call == r->resume_last) r->resume_last = NULL;
    if (call == r->stack.top) r->suspended_above = NULL;
    if (!r->resume_last) kpti_replay_go_on(r);
    *record = call;
    return KPTI_STEP_BEGIN;
}
