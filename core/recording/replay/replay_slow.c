/* replay_slow.c: see replay_slow.h. Calls that have no exit are closed one per step. */
#include "core/recording/replay/replay_slow.h"

#include "core/base/assert.h"
#include "core/base/host_heap.h"
#include "core/base/packed_words.h"
#include "core/recording/operator_event.h"
#include "core/recording/replay/replay_spans.h"

/* Returns the line that CALL was called from: LINE, unless the callers were cut. A callee of cut calls is
 * delivered as a callee of the call below them, so its line is the one where that call called them. */
static uint32_t line_of_caller(const kpti_replay *r, const kpti_call_record *call, uint32_t line)
{
    while (--call > r->stack.base && kpti_call_is_clamped(call))
        line = call->caller_line;
    return line;
}

static void read_operator(kpti_call_record *call, kpti_event event)
{
    const kpti_operator_fields fields = kpti_operator_read(event);
    call->flags |= KPTI_CALL_HAS_VALUES;
    call->value0 = fields.sequence_plus_1;
    call->value1 = fields.forward_thread;
    call->value2 = 0;
}

/* Reads the value of a WIDE event, which follows an OPERATOR event. */
static void read_wide(kpti_call_record *call, uint32_t what, uint64_t value)
{
    if (!(call->flags & KPTI_CALL_HAS_VALUES)) return;
    if (what == KPTI_WIDE_SEQUENCE) call->value0 = value + 1;
    if (what == KPTI_WIDE_FORWARD) call->value1 = value;
    if (what == KPTI_WIDE_RECORD) call->value2 = value;
}

static void read_inputs(const kpti_replay *r, uint32_t at, kpti_call_record *call)
{
    const uint32_t inputs = kpti_replay_inputs(r, at);
    if (inputs) call->line = inputs;
}

uint32_t kpti_replay_details(const kpti_replay *r, uint32_t at, kpti_call_record *call)
{
    for (; at < r->count && kpti_event_is_detail(r->events[at]); at++) {
        const uint32_t number = kpti_event_number(r->events[at]);
        const uint32_t kind = kpti_event_kind(r->events[at]);
        if (kind == KPTI_EVENT_LINE) call->line = number;
        if (kind == KPTI_EVENT_CALLER) call->caller_line = line_of_caller(r, call, number);
        if (kind == KPTI_EVENT_OPERATOR) read_operator(call, r->events[at]);
        if (kind == KPTI_EVENT_INPUTS) read_inputs(r, at, call);
        if (!kpti_event_is_long(kind)) continue;
        if (at + 1 == r->count) break; /* the second word is missing */
        at++;
        if (kind == KPTI_EVENT_WIDE) {
            read_wide(call, number, r->events[at]);
        } else {
            call->flags |= KPT_ACTIVITY_WATCHED;
            call->value0 = r->events[at];
            call->value1 = number;
            kpti_replay_mark_from(r, call - 1);
        }
    }
    return at;
}

/* Starts to close every call above FLOOR; those above FLAGGED_ABOVE get FLAGS. */
static void close_above(kpti_replay *r, kpti_call_record *floor, kpti_call_record *flagged_above,
                        int64_t ns, uint32_t flags)
{
    kpti_assert(floor < r->stack.top && !r->cutting && !r->resume_last);
    r->closing = 1;
    r->until = 0;
    r->floor = floor;
    r->flagged_above = flagged_above;
    r->close_ns = ns;
    r->close_flags = flags;
}

static kpti_step close_one(kpti_replay *r, kpti_call_record **record)
{
    kpti_call_record *call = r->stack.top--;
    const int clamped =
        kpti_call_is_clamped(call) || (r->suspended_above && call > r->suspended_above);
    call->end_ns = r->close_ns > call->start_ns ? r->close_ns : call->start_ns;
    if (call > r->flagged_above && !clamped) {
        call->flags |= r->close_flags;
        if (r->close_flags & KPT_ACTIVITY_RECOVERED) r->repairs++;
    }
    if (call->key == KPTI_GC_KEY) r->gc_open = 0;
    if (r->stack.top == r->suspended_above) r->suspended_above = NULL;
    if (r->stack.top == r->floor) {
        r->closing = 0;
        kpti_replay_go_on(r);
    }
    *record = call;
    return clamped ? KPTI_STEP_NONE : KPTI_STEP_END;
}

/* Returns where the OPEN events of the chunk end, including the details that belong to them. */
static uint32_t end_of_opens(const kpti_replay *r)
{
    uint32_t at = 0;
    while (at < r->count) {
        const uint32_t kind = kpti_event_kind(r->events[at]);
        if (kind != KPTI_EVENT_OPEN && (at == 0 || !kpti_event_is_detail(r->events[at]))) break;
        at += kpti_event_is_long(kind) ? 2 : 1;
    }
    return at < r->count ? at : r->count;
}

/* Finds the events of CHUNK. If they are packed, the replay unpacks them now, into space that it uses for one chunk
 * after the other. Events that damaged bytes do not have are repairs. Returns 0 if there is no memory. */
static int take_events(kpti_replay *r, const kpti_chunk *chunk)
{
    r->events = chunk->events;
    r->count = chunk->count;
    if (!chunk->packed_bytes) return 1;
    if (!kpti_host_array_reserve(r->env, &r->unpacked, &r->unpacked_capacity, chunk->count,
                                 sizeof *r->unpacked))
        return 0;
    r->events = r->unpacked;
    r->count = kpti_unpack_words(chunk->events, chunk->packed_bytes, r->unpacked, chunk->count);
    r->repairs += chunk->count - r->count;
    return 1;
}

static void begin_run(kpti_replay *r, uint32_t run)
{
    r->run = run;
    r->in_run = 1;
    kpti_times_begin_run(&r->times, r->recording->runs[run].start_ticks,
                         r->recording->runs[run].stop_ticks);
}

/* Begins the next chunk. If it is the FIRST present chunk of its run, or follows a GAP, its OPEN events begin
 * the open calls. Else those calls are on the stack already, and the OPEN events are skipped. Returns 0 if there is no
 * memory. */
static int begin_chunk(kpti_replay *r, const kpti_chunk *chunk, int first, int gap)
{
    kpti_assert(first || r->run == chunk->run);
    kpti_assert(!(first || gap) || r->stack.top == r->stack.base); /* their calls were closed */
    if (!take_events(r, chunk)) return 0;
    if (first) begin_run(r, chunk->run);
    r->opens_end = end_of_opens(r);
    kpti_times_begin_chunk(&r->times, chunk->base_ticks, r->opens_end);
    r->next = chunk->next;
    r->sequence = chunk->sequence;
    r->block_first = r->block_end = r->pause = r->until = 0;
    r->at = 0;
    if (first || gap)
        r->open_ns = kpti_times_at(&r->times, gap ? chunk->base_ticks
                                                  : r->recording->runs[chunk->run].start_ticks);
    else
        r->at = r->opens_end;
    return 1;
}

/* Returns when the replayed run ends. The reader's end applies only at the end of the thread's last chunk,
 * since damaged chunks may follow the last run. */
static int64_t end_of_run(kpti_replay *r)
{
    const int64_t stop_ns = kpti_times_at(&r->times, r->recording->runs[r->run].stop_ticks);
    return r->end_ns && !r->next && r->run == r->recording->run_count - 1 ? r->end_ns : stop_ns;
}

/* Called when the chunk's events are used up. */
static kpti_step next_chunk(kpti_replay *r)
{
    kpti_chunk space;
    const kpti_chunk *chunk = kpti_recording_chunk(r->recording, r->next, &space);
    int first;
    int gap;
    for (; chunk && chunk->run >= r->recording->run_count;
         chunk = kpti_recording_chunk(r->recording, r->next, &space)) {
        r->next = chunk->next;
        r->repairs++;
    }
    if (r->in_run && (!chunk || chunk->run != r->run)) {
        const uint64_t stop = r->recording->runs[r->run].stop_ticks;
        int64_t ns;
        if (r->far < r->recording->remote_end_count &&
            r->recording->cross_thread_ends[r->far].ticks <= stop)
            return kpti_replay_remote_end(r, r->times.last_ns, kpti_times_of(&r->times, stop));
        ns = end_of_run(r);
        if (kpti_replay_end_one_range(r, ns, KPT_ACTIVITY_ENDED_BY_STOP)) return KPTI_STEP_NONE;
        r->in_run = 0;
        kpti_replay_end_all_spans(r);
        if (r->stack.top > r->stack.base) {
            close_above(r, r->stack.base, r->stack.base, ns, KPT_ACTIVITY_ENDED_BY_STOP);
            return KPTI_STEP_NONE;
        }
    }
    if (!chunk) return KPTI_STEP_DONE;
    first = !r->in_run;
    gap = first ? chunk->sequence != 0
                : chunk->sequence != r->sequence + 1 || chunk->dropped_before > 0;
    if (gap && kpti_replay_end_one_range(r, r->times.last_ns, KPT_ACTIVITY_RECOVERED))
        return KPTI_STEP_NONE;
    if (gap && r->stack.top > r->stack.base) {
        close_above(r, r->stack.base, r->stack.base, r->times.last_ns, KPT_ACTIVITY_RECOVERED);
        return KPTI_STEP_NONE;
    }
    if (chunk->packed_bytes && r->lends_events) return KPTI_STEP_WAIT;
    if (gap) kpti_replay_end_all_spans(r);
    return begin_chunk(r, chunk, first, gap) ? KPTI_STEP_NONE : KPTI_STEP_NO_MEMORY;
}

/* Called when the loop reaches pause: a far end, the end of the block, or the end of the chunk. */
static kpti_step next_block(kpti_replay *r)
{
    if (r->pause < r->block_end) return kpti_replay_remote_end_in_block(r);
    if (r->block_end >= r->count) return next_chunk(r);
    r->block_first = r->block_end;
    r->before_ns = r->times.last_ns;
    r->block_end +=
        kpti_times_block(&r->times, r->events + r->block_first, r->count - r->block_first);
    kpti_replay_find_pause(r);
    kpti_replay_go_on(r);
    return KPTI_STEP_NONE;
}

/* Handles an exit of KEY that is not that of the top. Returns the call that exits, or NULL if it is not open. */
static kpti_call_record *exit_below(kpti_replay *r, uint32_t key)
{
    kpti_call_record *call = kpti_call_stack_find(&r->stack, key, r->next_id);
    if (call)
        close_above(r, call - 1, call, r->times.ns[r->at - r->block_first], KPT_ACTIVITY_RECOVERED);
    else
        r->repairs++;
    return call;
}

/* Begins a call that has no ENTER event. */
static kpti_step begin_odd(kpti_replay *r, uint32_t key, int64_t ns, uint32_t flags,
                           kpti_call_record **record)
{
    if (r->stack.top == r->stack.last && !kpti_call_stack_grow(&r->stack))
        return KPTI_STEP_NO_MEMORY;
    kpti_replay_begin(r, ++r->stack.top, r->next_id++, key, ns, flags);
    r->at++;
    *record = r->stack.top;
    return KPTI_STEP_BEGIN;
}

static kpti_step begin_open(kpti_replay *r, uint32_t function, kpti_call_record **record)
{
    kpti_step step;
    if (r->at >= r->opens_end) { /* not at the start of a chunk */
        r->repairs++;
        r->at++;
        return KPTI_STEP_NONE;
    }
    if (function == KPTI_OPEN_SPAN)
        return kpti_replay_begin_span(r, r->open_ns, KPT_ACTIVITY_BEGAN_BEFORE);
    step = begin_odd(r, function << KPTI_KIND_BITS, r->open_ns, KPT_ACTIVITY_BEGAN_BEFORE, record);
    if (step == KPTI_STEP_BEGIN) r->at = kpti_replay_details(r, r->at, *record);
    return step;
}

/* There is one collection at a time. If another is still open, its end was lost. */
static kpti_step begin_gc(kpti_replay *r, uint32_t generation, kpti_call_record **record)
{
    const int64_t ns = r->times.ns[r->at - r->block_first];
    kpti_step step;
    if (r->gc_open) {
        kpti_call_record *gc = kpti_call_stack_find(&r->stack, KPTI_GC_KEY, r->next_id);
        kpti_assert(gc);
        close_above(r, gc - 1, gc - 1, ns, KPT_ACTIVITY_RECOVERED);
        return KPTI_STEP_NONE;
    }
    step = begin_odd(r, KPTI_GC_KEY, ns, 0, record);
    if (step != KPTI_STEP_BEGIN) return step;
    r->gc_open = 1;
    (*record)->function = kpti_gc_function(r->recording);
    (*record)->flags |= KPTI_CALL_HAS_VALUES;
    (*record)->value0 = generation;
    (*record)->value1 = 0;
    (*record)->value2 = 0;
    return step;
}

static void end_gc(kpti_replay *r, uint64_t counts)
{
    kpti_call_record *gc = exit_below(r, KPTI_GC_KEY);
    if (!gc) return;
    gc->value1 = (uint32_t)counts;
    gc->value2 = counts >> 32;
}

/* Reports a point of the host as a call that takes no time. */
static kpti_step point(kpti_replay *r, uint32_t number, kpti_call_record **record)
{
    kpti_call_record *p = &r->cut;
    memset(p, 0, sizeof *p);
    p->parent_id = r->stack.top->id;
    p->depth = r->stack.top->depth + 1;
    p->start_ns = p->end_ns = r->times.ns[r->at - 1 - r->block_first];
    p->function = kpti_point_function(r->recording);
    p->flags = KPTI_CALL_HAS_VALUES;
    p->value0 = number;
    *record = p;
    return KPTI_STEP_POINT;
}

/* Handles one event that the hot loop does not. */
static kpti_step odd_event(kpti_replay *r, kpti_call_record **record)
{
    const kpti_event event = r->events[r->at];
    const uint32_t kind = kpti_event_kind(event);
    const uint32_t number = kpti_event_number(event);
    const uint32_t width = kpti_event_is_long(kind) ? 2 : 1;
    if (width > r->count - r->at) { /* the second word is missing */
        r->repairs++;
        r->at = r->count;
        return KPTI_STEP_NONE;
    }
    switch (kind) {
    case KPTI_EVENT_ENTER: /* the stack is full */
        return kpti_call_stack_grow(&r->stack) ? KPTI_STEP_NONE : KPTI_STEP_NO_MEMORY;
    case KPTI_EVENT_OPEN:
        return begin_open(r, number, record);
    case KPTI_EVENT_GC_BEGIN:
        return begin_gc(r, number, record);
    case KPTI_EVENT_EXIT:
        (void)exit_below(r, number << KPTI_KIND_BITS);
        break;
    case KPTI_EVENT_SPAN_BEGIN:
        return kpti_replay_begin_span(r, r->times.ns[r->at - r->block_first], 0);
    case KPTI_EVENT_SPAN_END:
        kpti_replay_end_span(r, number, r->times.ns[r->at - r->block_first]);
        break;
    case KPTI_EVENT_MARK:
        kpti_replay_mark_from(r, r->stack.top);
        r->at++;
        return number ? point(r, number, record) : KPTI_STEP_NONE;
    case KPTI_EVENT_GC_END:
        end_gc(r, r->events[r->at + 1]);
        break;
    case KPTI_EVENT_EPOCH:
        break;
    default:
        r->repairs++;
        break;
    }
    r->at += width;
    return KPTI_STEP_NONE;
}

kpti_step kpti_replay_slow(kpti_replay *r, kpti_call_record **record)
{
    kpti_assert(kpti_replay_is_valid(r));
    if (r->closing) return close_one(r, record);
    if (r->resume_last) return kpti_replay_resume_one(r, record);
    if (r->cutting) return kpti_replay_cut_one(r, record);
    if (r->range_is_due) return kpti_replay_report_range(r, record);
    if (r->at >= r->pause) return next_block(r);
    if (r->suspended_above && kpti_replay_before_event(r)) return KPTI_STEP_NONE;
    return odd_event(r, record);
}
