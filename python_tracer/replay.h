/* replay.h: one thread's events as calls: a single pass with a stack, no sort, no hash and no
 * allocation per event. It repairs what real interpreters do, and counts each repair:
 *
 *   an exit whose function is open further down closes what lies above it, flagged RECOVERED: enters
 *     without exits, as of a bound C method that is called with a star; each closed one counts;
 *   an exit whose function is not open is ignored;
 *   a garbage collection that begins within another closes that one, flagged RECOVERED;
 *   ticks that go backwards are taken as equal to the last;
 *   calls that OPEN events tell of begin with the run, or with the chunk after a gap, flagged
 *     BEGAN_BEFORE; what was open before a gap is closed at the last event before it, flagged
 *     RECOVERED; each closed one counts;
 *   events that can't be (unknown kinds, a missing second word, a LINE of nothing), and chunks of a
 *     run that does not exist, are skipped.
 *
 * What is open when a run ends is closed there and flagged ENDED_BY_STOP, which is no repair; at the end
 * of the last run, the reader may say when that is.
 *
 * Events may be anything at all, as a chunk may come from a damaged file: nothing is read past a
 * chunk's count, times never go backwards, and the stack is bounded by memory only. */
#ifndef KPTI_REPLAY_H
#define KPTI_REPLAY_H

#include "impl/kpti_impl.h"
#include "recording.h"

/* A call, open or just closed. The times of a thread's steps never go backwards. (What is written
 * together stands together, and is read so: a load that spans two stores waits for both.) */
typedef struct kpti_call_record {
    uint64_t id; /* first_id + index. The reader may change it while the call is open: its end
                           and its callees' parent_id then have the new one */
    uint64_t parent_id; /* 0: none */
    int64_t start_ns;
    uint64_t index;    /* its place in pre-order among the thread's calls, from 0; GC and C too */
    uint32_t function; /* its id; of a GC, kpti_gc_function */
    uint32_t key;      /* replay's own: what its exit carries */
    uint32_t flags;    /* KPT_ACTIVITY_* */
    uint32_t line;     /* 0: none was recorded */
    uint32_t depth;
    uint32_t spare;
    int64_t end_ns;  /* of a closed one */
    uint64_t value0; /* of one that is WATCHED, or a GC; else undefined */
    uint64_t value1;
    uint64_t value2;
} kpti_call_record;

/* Stands for garbage collections: the first that is no function's id. */
static inline uint32_t kpti_gc_function(const kpti_recording *recording)
{
    return recording->function_count ? recording->function_count : 1;
}

/* Garbage collections never nest: their ends come in the order of their begins. */
static inline int kpti_call_is_gc(const kpti_call_record *call)
{
    return call->key == KPTI_EVENT_GC_BEGIN;
}

static inline int kpti_call_has_values(const kpti_call_record *call)
{
    return call->flags & KPT_ACTIVITY_WATCHED || kpti_call_is_gc(call);
}

/* Writes a call as an activity of THREAD; kind, and a line that was not recorded, are the function's
 * business and 0 here. */
static inline void kpti_call_write(const kpti_call_record *call, int64_t end_ns, uint32_t thread,
                                   kpt_activity *out)
{
    out->id = call->id;
    out->parent_id = call->parent_id;
    out->start_ns = call->start_ns;
    out->end_ns = end_ns;
    out->thread = thread;
    out->name = call->function;
    out->kind = 0;
    out->phase = KPT_PHASE_COMPLETE;
    out->flags = call->flags;
    out->line = call->line;
    out->depth = call->depth;
    out->value0 = out->value1 = out->value2 = 0;
    if (__builtin_expect(kpti_call_has_values(call), 0)) {
        out->value0 = call->value0;
        out->value1 = call->value1;
        out->value2 = call->value2;
    }
}

/* What happens next in a thread. */
typedef enum kpti_step {
    KPTI_STEP_DONE = 0,
    KPTI_STEP_BEGIN = 1, /* record is the call that began; WATCH and LINE of it are known already */
    KPTI_STEP_END = 2,   /* record is the call that ended */
    KPTI_STEP_NO_MEMORY = 3
} kpti_step;

typedef struct kpti_replay kpti_replay;

/* How ticks become nanoseconds. */
typedef struct kpti_timebase {
    kpt_convert_fn convert; /* NULL: a tick is a nanosecond. Called with blocks of ticks, in
                               non-decreasing order; should it go backwards, that is mended */
    void *convert_ctx;
    int64_t end_ns; /* when the calls end that are open at the end of the last run; 0: there */
} kpti_timebase;

/* A replay of one track. ENV lends the memory. NULL when there is none. */
kpti_replay *kpti_replay_new(const kpti_env *env, const kpti_recording *recording, uint32_t track,
                             uint64_t first_id, const kpti_timebase *timebase);
/* The next begin or end, in time order. RECORD is lent until the next call. */
kpti_step kpti_replay_next(kpti_replay *replay, kpti_call_record **record);
/* Instead: the next ends, up to ROOM of them, written as activities; FILLED receives how many there are.
 * KPTI_STEP_END: there may be more. Cheaper than one by one. */
kpti_step kpti_replay_fill(kpti_replay *replay, kpt_activity *activities, uint32_t room,
                           uint32_t *filled);
/* How many repairs were made so far, and calls begun. */
uint64_t kpti_replay_repairs(const kpti_replay *replay);
uint64_t kpti_replay_calls(const kpti_replay *replay);
void kpti_replay_free(kpti_replay *replay);

#endif
