/* replay_spans.c: see replay_spans.h.
 *
 * In parts, a call that was cut is suspended and continues at the next event of its thread, not at the cut: the
 * host's own time of the span is between the two, so a part that began at the cut would cross the span. */
#include "core/recording/replay/replay_spans.h"

#include "core/base/assert.h"
#include "core/recording/operator_event.h"

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

/* Prepares the report of a range. It is due when the calls that would cross the range are cut. */
static void set_range(kpti_replay *r, uint32_t function, uint32_t number, int64_t ns,
                      uint32_t flags)
{
    kpti_call_record *const range = &r->range;
    memset(range, 0, sizeof *range);
    range->function = function;
    range->flags = flags | KPTI_CALL_HAS_VALUES;
    range->start_ns = range->end_ns = ns;
    range->value0 = number;
}

/* Reads the INPUTS event at AT, behind the events of the name. Returns the index of its last event. */
static uint32_t read_inputs(kpti_replay *r, uint32_t at)
{
    const kpti_event event = r->events[at];
    if (r->options.has_ranges)
        r->range.value1 |= (uint64_t)kpti_replay_inputs(r, at) << KPTI_RANGE_INPUTS_SHIFT;
    if ((uint32_t)event) return at; /* it refers to others */
    while (at + 1 < r->count && kpti_event_kind(r->events[at + 1]) == KPTI_EVENT_TEXT)
        at++;
    return at;
}

/* Reads the details of the range that begins, from AT on. Returns the index after them. */
static uint32_t read_range(kpti_replay *r, uint32_t at)
{
    kpti_call_record *const range = &r->range;
    for (; at < r->count && kpti_event_is_detail(r->events[at]); at++) {
        const kpti_event event = r->events[at];
        const uint32_t kind = kpti_event_kind(event);
        if (kind == KPTI_EVENT_TEXT) {
            if (!range->line++) range->id = (uint64_t)(uintptr_t)&r->events[at];
        } else if (kind == KPTI_EVENT_OPERATOR) {
            const kpti_operator_fields fields = kpti_operator_read(event);
            range->value1 = fields.scope | fields.flags << 8;
        } else if (kind == KPTI_EVENT_INPUTS) {
            at = read_inputs(r, at);
        }
        if (!kpti_event_is_long(kind)) continue;
        if (at + 1 == r->count) break; /* the second word is missing */
        at++;
        if (kind != KPTI_EVENT_WIDE) continue;
        if (kpti_event_number(event) == KPTI_WIDE_SPAN)
            range->value0 = r->events[at] & KPTI_MAX_NUMBER;
        if (kpti_event_number(event) == KPTI_WIDE_RECORD) range->value2 = r->events[at];
    }
    return at;
}

kpti_step kpti_replay_begin_span(kpti_replay *r, int64_t ns, uint32_t flags)
{
    kpti_call_record *floor;
    uint32_t is_range;
    uint32_t end;
    uint32_t number;
    set_range(r, kpti_range_begin_function(r->recording), kpti_event_number(r->events[r->at]), ns,
              flags);
    end = read_range(r, r->at + 1);
    number = (uint32_t)r->range.value0;
    is_range = r->range.line > 0;
    if (is_range && !r->options.has_ranges) {
        /* Its end finds no open span with its number. */
    } else if (r->plan) {
        if (!kpti_span_clamps_scan(r->plan, number, r->next_id)) return KPTI_STEP_NO_MEMORY;
    } else {
        if (!kpti_span_clamps_apply(&r->clamps, r->spans++, number, is_range, &r->stack, &floor))
            return KPTI_STEP_NO_MEMORY;
        cut_above(r, floor, ns);
        r->range_is_due = (int)is_range;
    }
    r->at = end;
    return KPTI_STEP_NONE;
}

/* The span ends: cuts the calls that began within it. */
void kpti_replay_end_span(kpti_replay *r, uint32_t number, int64_t ns)
{
    kpti_call_record *floor;
    uint32_t is_range;
    if (r->plan) {
        kpti_span_clamps_scan_end(r->plan, number, &r->stack);
    } else {
        floor = kpti_span_clamps_end(&r->clamps, number, &r->stack, &is_range);
        if (floor)
            cut_above(r, floor, ns);
        else if (r->suspended_above)
            resume(r, r->stack.top, ns);
        if (is_range) {
            set_range(r, kpti_range_end_function(r->recording), number, ns, 0);
            r->range_is_due = 1;
        }
    }
}

/* Finds where the next far end is due: before the first later event of the block. */
void kpti_replay_find_pause(kpti_replay *r)
{
    const uint64_t *const ticks = r->times.ticks;
    uint32_t at = r->at > r->block_first ? r->at : r->block_first;
    uint64_t due;
    r->pause = r->block_end;
    if (r->far == r->recording->remote_end_count) return;
    due = r->recording->cross_thread_ends[r->far].ticks;
    if (due >= r->times.last_ticks) return;
    while (at < r->block_end && ticks[at - r->block_first] <= due)
        at++;
    if (at < r->block_end) r->pause = at;
}

/* Applies the far end that is due. Its time is not before the previous event or the previous far end, and not
 * after the next event, whatever the converter returns. */
kpti_step kpti_replay_remote_end(kpti_replay *r, int64_t before_ns, int64_t next_ns)
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
kpti_step kpti_replay_remote_end_in_block(kpti_replay *r)
{
    const uint32_t at = (r->at < r->block_end ? r->at : r->block_end) - r->block_first;
    const int64_t *const ns = r->times.ns;
    return kpti_replay_remote_end(r, at ? ns[at - 1] : r->before_ns,
                                  r->block_first + at < r->block_end ? ns[at] : r->times.last_ns);
}

int kpti_replay_end_one_range(kpti_replay *r, int64_t ns, uint32_t flags)
{
    const uint32_t number = r->plan ? KPTI_NO_RANGE : kpti_span_clamps_take_range(&r->clamps);
    if (number == KPTI_NO_RANGE) return 0;
    set_range(r, kpti_range_end_function(r->recording), number, ns, flags);
    r->floor = r->stack.top;
    r->range_is_due = 1;
    r->until = 0;
    return 1;
}

kpti_step kpti_replay_report_range(kpti_replay *r, kpti_call_record **record)
{
    r->range_is_due = 0;
    r->range.parent_id = r->floor->id;
    r->range.depth = r->floor->depth + 1;
    kpti_replay_go_on(r);
    *record = &r->range;
    return KPTI_STEP_RANGE;
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
    if (r->options.parts) r->suspended_above = r->floor < r->stack.top ? r->floor : NULL;
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
    if (r->options.parts)
        call->flags = KPT_ACTIVITY_CONTINUED |
                      (call->flags &
                       (KPT_ACTIVITY_WATCHED | KPT_ACTIVITY_BEGAN_BEFORE | KPTI_CALL_HAS_VALUES));
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
    if (r->options.parts == KPTI_PARTS_NUMBERED) call->id = r->next_id++;
    if (call == r->resume_last) r->resume_last = NULL;
    if (call == r->stack.top) r->suspended_above = NULL;
    if (!r->resume_last) kpti_replay_go_on(r);
    *record = call;
    return KPTI_STEP_BEGIN;
}
