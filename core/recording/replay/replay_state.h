/* replay_state.h: the state of a replay between two steps. The hot loop (replay.c), the slow path
 * (replay_slow.c) and the spans of the host (replay_spans.c) share it.
 *
 * Invariants:
 *   until is where the loop stops: at pause, or at 0 while calls are closed, cut, suspended or resumed;
 *   pause is the end of the block of times, or, before that, the first event after a far end;
 *   all calls below a marked call are marked;
 *   all calls on the stack belong to the replayed run, since the end of a run closes its calls;
 *   at most one GC is open. */
#ifndef KPTI_CORE_RECORDING_REPLAY_REPLAY_STATE_H
#define KPTI_CORE_RECORDING_REPLAY_REPLAY_STATE_H

#include "core/base/assert.h"
#include "core/recording/operator_event.h"
#include "core/recording/replay/replay_types.h"
#include "core/recording/replay/span_clamps.h"
#include "core/recording/replay/timestamp_decoder.h"

/* The result of one step of the slow path. */
typedef enum kpti_step {
    KPTI_STEP_DONE = 0,
    KPTI_STEP_BEGIN = 1, /* record is the call that began */
    KPTI_STEP_END = 2,   /* record is the call that ended */
    KPTI_STEP_NO_MEMORY = 3,
    KPTI_STEP_NONE = 4,  /* nothing to report yet */
    KPTI_STEP_POINT = 5, /* record is a point of the host */
    KPTI_STEP_RANGE = 6, /* record is the begin or the end of a range of the host */
    KPTI_STEP_WAIT = 7   /* the next chunk would overwrite events that the reader still uses */
} kpti_step;

struct kpti_replay {
    kpti_call_stack stack;
    const kpti_event *events; /* of the chunk; in unpacked, if it is packed */
    uint32_t at;              /* the next event */
    uint32_t until;
    uint32_t block_first; /* event that times.ns[0] belongs to */
    uint32_t block_end;
    uint32_t pause;
    uint32_t count;     /* events in the chunk */
    uint32_t opens_end; /* where its OPEN events end */
    kpti_event *unpacked;
    uint64_t unpacked_capacity;
    int lends_events; /* the activities written in this call have addresses of events */
    uint64_t next_id;
    uint64_t first_id;
    uint64_t repairs;
    uint32_t function_count;
    uint32_t track;

    const kpti_env *env;
    const kpti_recording *recording;
    const kpti_chunk *next; /* the place of the next chunk */
    uint32_t run;
    uint32_t sequence;
    int has_spans; /* the track has spans of the host */
    int in_run;
    int gc_open;
    int64_t open_ns; /* begin of the calls from OPEN events */
    int64_t end_ns;  /* of the reader, or 0 */

    /* While calls are closed: all calls above floor end at close_ns. Those above flagged_above get close_flags. */
    int closing;
    uint32_t close_flags;
    int64_t close_ns;
    kpti_call_record *floor;
    kpti_call_record *flagged_above;

    /* Spans of the host. While calls are cut: cutting is the next call to cut, down to floor. */
    kpti_span_clamps *plan; /* filled by the first pass; NULL in the second */
    kpti_span_clamps clamps;
    uint64_t spans; /* spans begun so far */
    kpti_call_record *cutting;
    kpti_call_record cut; /* the call that was just cut, or a point */
    /* the begin or end of a range, reported when the calls that would cross it are cut */
    kpti_call_record range;
    int range_is_due;

    /* Calls in parts: the calls above suspended_above were cut and have not continued yet; NULL if there are
     * none. While they are resumed: the lowest of them is next, up to resume_last, at resume_ns. */
    kpti_replay_options options;
    kpti_call_record *suspended_above;
    kpti_call_record *resume_last; /* NULL: no call is being resumed */
    int64_t resume_ns;
    uint64_t far;      /* index of the next far end to apply */
    int64_t far_ns;    /* time of the last far end */
    int64_t before_ns; /* time of the last event before the block */

    kpti_times times;
};

static inline int kpti_replay_is_valid(const kpti_replay *r)
{
    const int is_slow =
        r->closing || r->cutting || r->resume_last || r->suspended_above || r->range_is_due;
    const kpti_call_record *const base = r->stack.base;
    const kpti_call_record *const top = r->stack.top;
    return kpti_call_stack_is_valid(&r->stack) && r->block_first <= r->block_end &&
           r->block_end <= r->count && r->pause <= r->block_end && r->at <= r->count &&
           (r->until == 0 || (r->until == r->pause && !is_slow)) &&
           (!r->closing || (r->floor >= base && r->floor < top)) &&
           (!r->cutting || (r->cutting >= r->floor && r->cutting <= top)) &&
           (!r->suspended_above || (r->suspended_above >= base && r->suspended_above < top)) &&
           (!r->resume_last || (r->suspended_above && r->resume_last <= top)) &&
           r->far <= r->recording->remote_end_count &&
           (is_slow || kpti_call_stack_is_ordered(&r->stack));
}

/* Fills CALL, the record above the top, for the function in KEY. */
static inline __attribute__((always_inline)) void kpti_replay_begin(const kpti_replay *r,
                                                                    kpti_call_record *call,
                                                                    uint64_t id, uint32_t key,
                                                                    int64_t ns, uint32_t flags)
{
    const uint32_t function = key >> KPTI_KIND_BITS;
    call->id = id;
    call->parent_id = call[-1].id;
    call->start_ns = ns;
    call->function = function < r->function_count ? function : 0;
    call->key = key;
    call->flags = flags;
    call->line = 0;
    call->depth = call[-1].depth + 1;
    call->caller_line = 0;
}

/* Marks CALL and its callers: something of the host happened inside CALL. */
static inline void kpti_replay_mark_from(const kpti_replay *r, kpti_call_record *call)
{
    for (; call > r->stack.base && !(call->flags & KPT_ACTIVITY_MARKED); call--)
        call->flags |= KPT_ACTIVITY_MARKED;
}

/* Enables the hot loop again, unless calls are suspended or have to be cut, or a range is due. */
static inline void kpti_replay_go_on(kpti_replay *r)
{
    r->until = r->suspended_above || r->cutting || r->range_is_due ? 0 : r->pause;
}

/* Returns what the user's function returns for the INPUTS event at AT, or 0. The events that it refers to may be missing
 * in a damaged chunk. */
static inline uint32_t kpti_replay_inputs(const kpti_replay *r, uint32_t at)
{
    const uint32_t distance = (uint32_t)r->events[at];
    const uint32_t count = kpti_event_number(r->events[at]);
    const uint32_t first = distance ? at - distance : at + 1;
    if (!r->options.inputs || distance > at || !count || count > KPTI_MAX_INPUT_EVENTS ||
        first > r->count || count > r->count - first)
        return 0;
    return r->options.inputs(r->options.inputs_ctx, &r->events[first], count);
}

#endif
