/* replay_spans.c: spans of the host's in a replay: what would cross them is cut, in two passes (see cuts.h). */
#include "replay_state.h"

/* Cuts, one at a time, the calls above FLOOR. */
static void cut_above(kpti_replay *r, kpti_call_record *floor, int64_t ns)
{
    r->floor = floor;
    r->cutting = r->stack.top;
    r->close_ns = ns;
    r->until = 0;
}

/* A span of the host's begins: cuts the calls that don't last. */
kpti_step kpti_replay_begin_span(kpti_replay *r, uint32_t number)
{
    kpti_call_record *floor;
    if (r->plan) {
        if (!kpti_cuts_plan(r->plan, number, r->next_id)) return KPTI_STEP_NO_MEMORY;
    } else {
        if (!kpti_cuts_begin(&r->cuts, r->spans++, number, &r->stack, &floor))
            return KPTI_STEP_NO_MEMORY;
        cut_above(r, floor, r->times.ns[r->at - r->block_first]);
    }
    r->at++;
    return KPTI_STEP_NONE;
}

/* It ends: cuts the calls that began within it. */
void kpti_replay_end_span(kpti_replay *r, uint32_t number, int64_t ns)
{
    kpti_call_record *floor;
    if (r->plan) {
        kpti_cuts_plan_end(r->plan, number, &r->stack);
    } else {
        floor = kpti_cuts_end(&r->cuts, number, &r->stack);
        if (floor) cut_above(r, floor, ns);
    }
}

/* Where the next far end is due: before the first event of the block that is later. */
void kpti_replay_find_pause(kpti_replay *r)
{
    const uint64_t *const ticks = r->times.ticks;
    uint32_t at = r->at > r->block_first ? r->at : r->block_first;
    uint64_t due;
    r->pause = r->block_end;
    if (r->far == r->recording->far_end_count) return;
    due = r->recording->far_ends[r->far].ticks;
    if (due >= r->times.last_ticks) return;
    while (at < r->block_end && ticks[at - r->block_first] <= due)
        at++;
    if (at < r->block_end) r->pause = at;
}

/* The far end that is due: not before the event before or the far end before, nor after the next event,
 * whatever the converter says. */
kpti_step kpti_replay_far_end(kpti_replay *r, int64_t before_ns, int64_t next_ns)
{
    const kpti_far_end *far_end = &r->recording->far_ends[r->far++];
    int64_t ns = kpti_times_of(&r->times, far_end->ticks);
    if (ns > next_ns) ns = next_ns;
    if (ns < before_ns) ns = before_ns;
    if (ns < r->far_ns) ns = r->far_ns;
    r->far_ns = ns;
    kpti_replay_find_pause(r);
    r->until = r->pause;
    kpti_replay_end_span(r, far_end->number, ns);
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
        kpti_cuts_plan_end_all(r->plan, &r->stack);
    else
        kpti_cuts_end_all(&r->cuts);
}

/* Cuts one call and leaves its ghost. The others, which last, are marked. */
kpti_step kpti_replay_cut_one(kpti_replay *r, kpti_call_record **record)
{
    kpti_call_record *call = r->cutting--;
    if (call == r->floor) {
        r->cutting = NULL;
        r->until = r->pause;
        kpti_replay_mark_from(r, r->stack.top);
        return KPTI_STEP_NONE;
    }
    if (kpti_call_is_ghost(call)) { /* what it stood on is cut as well */
        call->id = r->floor->id;
        call->depth = r->floor->depth;
        return KPTI_STEP_NONE;
    }
    r->cut = *call;
    r->cut.end_ns = r->close_ns;
    r->cut.flags |= KPT_ACTIVITY_CLAMPED;
    if (call->key == KPTI_GC_KEY) r->gc_open = 0;
    call->key |= KPTI_GHOST_KEY;
    call->parent_id = call->id;
    call->id = r->floor->id;
    call->depth = r->floor->depth;
    *record = &r->cut;
    return KPTI_STEP_END;
}
