/* replay_state.h: a replay between two steps; what the hot loop (replay.c) and the slow path
 * (replay_slow.c) share.
 *
 * Invariants:
 *   until is where the loop has to stop: at pause, or 0 while calls are closed, cut, suspended or resumed;
 *   pause is the end of the block of times, or, before that, the first event after a far end;
 *   a call that is marked has only marked ones below it;
 *   all calls on the stack are of the run that is replayed, as its end closes them;
 *   at most one GC is open. */
#ifndef KPTI_CORE_RECORDING_REPLAY_REPLAY_STATE_H
#define KPTI_CORE_RECORDING_REPLAY_REPLAY_STATE_H

#include "core/recording/replay/span_clamps.h"
#include "core/recording/replay/timestamp_decoder.h"

/* What happens next. */
typedef enum kpti_step {
    KPTI_STEP_DONE = 0,
    KPTI_STEP_BEGIN = 1, /* record is the call that began */
    KPTI_STEP_END = 2,   /* record is the call that ended */
    KPTI_STEP_NO_MEMORY = 3,
    KPTI_STEP_NONE = 4, /* nothing to report yet */
    KPTI_STEP_POINT = 5 /* record is a point of the host's */
} kpti_step;

struct kpti_replay {
    kpti_call_stack stack;
    const kpti_event *events; /* of the chunk */
    uint32_t at;              /* the next event */
    uint32_t until;
    uint32_t block_first; /* the event that the first of times.ns belongs to */
    uint32_t block_end;
    uint32_t pause;
    uint32_t count;     /* events in the chunk */
    uint32_t opens_end; /* where its OPEN events end */
    uint64_t next_id;
    uint64_t first_id;
    uint64_t repairs;
    uint32_t function_count;
    uint32_t track;

    const kpti_env *env;
    const kpti_recording *recording;
    const kpti_chunk *next; /* the chunk after this one */
    uint32_t run;
    uint32_t sequence;
    int in_run;
    int gc_open;
    int64_t open_ns; /* when the calls of OPEN events began */
    int64_t end_ns;  /* the reader's, or 0 */

    /* While calls are closed: all above floor, at close_ns; those above flagged_above, flagged. */
    int closing;
    uint32_t close_flags;
    int64_t close_ns;
    kpti_call_record *floor;
    kpti_call_record *flagged_above;

    /* Spans of the host's. While calls are cut: cutting is the next one, down to floor. */
    kpti_cuts *plan; /* the first pass: what is found goes there; else NULL */
    kpti_cuts cuts;
    uint64_t spans; /* begun so far */
    kpti_call_record *cutting;
    kpti_call_record cut; /* the one that was cut just now, or a point */

    /* Calls in parts: those above suspended_above were cut and have not gone on yet; NULL: none. While they are
     * resumed: the next one is the lowest of them, up to resume_last, at resume_ns. */
    kpti_parts parts;
    kpti_call_record *suspended_above;
    kpti_call_record *resume_last; /* NULL: none is resumed */
    int64_t resume_ns;
    uint64_t far;      /* the first of the recording's far ends that the thread has not come to */
    int64_t far_ns;    /* when the one before was */
    int64_t before_ns; /* when the event before the block was */

    kpti_times times;
};

/* Does one thing that the loop can't: the next block or chunk, an odd event, a call to be closed, more
 * room. RECORD is lent until the next step. */
kpti_step kpti_replay_slow(kpti_replay *replay, kpti_call_record **record);

/* Fills CALL, the one above the top, of the function that KEY has. */
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

static inline int kpti_is_detail(kpti_event event)
{
    const uint32_t kind = kpti_event_kind(event);
    return kind == KPTI_EVENT_LINE || kind == KPTI_EVENT_WATCH || kind == KPTI_EVENT_CALLER;
}

/* Reads the LINE, CALLER and WATCH events at AT into CALL; returns where they end. */
uint32_t kpti_replay_details(const kpti_replay *r, uint32_t at, kpti_call_record *call);

/* The host knows of something in CALL: so the calls around contain it, too. */
static inline void kpti_replay_mark_from(const kpti_replay *r, kpti_call_record *call)
{
    for (; call > r->stack.base && !(call->flags & KPT_ACTIVITY_MARKED); call--)
        call->flags |= KPT_ACTIVITY_MARKED;
}

/* Spans of the host's (replay_spans.c). */
/* A span of the host's begins: from now on the calls that don't last are cut. */
kpti_step kpti_replay_begin_span(kpti_replay *r, uint32_t number);
/* It ends, at NS: the calls that began within it are cut. */
void kpti_replay_end_span(kpti_replay *r, uint32_t number, int64_t ns);
/* Sets pause: where the next far end is due, before the first event of the block that is later. */
void kpti_replay_find_pause(kpti_replay *r);
/* The far end that is due: not before the event before, nor after the next, whatever the converter says. */
kpti_step kpti_replay_far_end(kpti_replay *r, int64_t before_ns, int64_t next_ns);
/* The same among the events of a block. */
kpti_step kpti_replay_far_end_in_block(kpti_replay *r);
/* The run ends, or there is a gap. */
void kpti_replay_end_all_spans(kpti_replay *r);
/* Cuts one call, and suspends it or leaves its ghost. The others, which last, are marked. */
kpti_step kpti_replay_cut_one(kpti_replay *r, kpti_call_record **record);
/* While calls are suspended: does what the next event asks for before it is replayed. Returns 0 if that is
 * nothing. */
int kpti_replay_before_event(kpti_replay *r);
/* Begins the next part of one suspended call. */
kpti_step kpti_replay_resume_one(kpti_replay *r, kpti_call_record **record);

/* Lets the loop run again, unless calls are suspended or have to be cut. */
static inline void kpti_replay_go_on(kpti_replay *r)
{
    r->until = r->suspended_above || r->cutting ? 0 : r->pause;
}

#endif
