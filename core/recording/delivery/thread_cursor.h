/* thread_cursor.h: the cursor over one thread (kpti_thread_cursor), for deliveries that filter or renumber calls. It
 * moves over the thread's activities, and only over those that are delivered. Ids are assigned in the order in
 * which activities are taken from all cursors, and stored here for the callees and the ends. */
#ifndef KPTI_CORE_RECORDING_DELIVERY_THREAD_CURSOR_H
#define KPTI_CORE_RECORDING_DELIVERY_THREAD_CURSOR_H

#include "core/base/assert.h"
#include "core/recording/delivery/call_outcomes.h"

enum { KPTI_THREAD_CURSOR_BLOCK = 128 };

/* Bit in the id of an open call: this part of the call is not delivered, nor are the calls in it. */
#define KPTI_THREAD_CURSOR_HIDDEN (UINT64_C(1) << 63)

/* Fields that are written separately are not adjacent: a wider load of both would wait for the stores. */
typedef struct kpti_thread_cursor {
    int64_t when_ns;        /* time of the next activity */
    kpt_activity *activity; /* the next activity, or NULL; the fields below replace its own */
    uint32_t flags;         /* the activity's flags */
    unsigned what;
    int64_t end_ns;   /* the activity's end */
    uint32_t phase;   /* the activity's phase */
    kpti_filled left; /* whether there may be activities after those in the block */
    uint32_t at;      /* index of the next activity in the block */
    int takes_all;    /* every call is delivered */
    uint32_t count;
    int with_outcomes;
    /* ids of the open calls, by depth; a hidden call has KPTI_THREAD_CURSOR_HIDDEN and the id of an earlier part */
    uint64_t *ids;
    uint64_t id_capacity;
    kpti_batcher *b;
    kpti_replay *replay;
    kpti_call_outcomes outcomes;
    uint64_t gcs;    /* collections begun so far */
    uint64_t ranges; /* the same of ranges */
    uint32_t track;
    kpt_activity block[KPTI_THREAD_CURSOR_BLOCK];
} kpti_thread_cursor;

/* Returns whether the cursor's activity is a point, not a call. */
static inline int kpti_thread_cursor_is_point(const kpti_thread_cursor *cursor)
{
    return cursor->activity->phase == KPT_PHASE_COMPLETE;
}

/* Makes A the cursor's activity. */
static inline void kpti_thread_cursor_set(kpti_thread_cursor *cursor, kpt_activity *a)
{
    cursor->activity = a;
    cursor->end_ns = a->end_ns;
    cursor->flags = a->flags;
    cursor->phase = a->phase;
    cursor->when_ns = a->end_ns; /* end_ns of a begin is its start */
}

/* Initialises the cursor, which must be zeroed, for TRACK, and moves it to the first activity. Without KPTI_ENDS each
 * call, and each range, is one complete activity at its begin. With KPTI_ENDS it is a begin and an end. Returns
 * 0 if there is no memory. The caller must call kpti_thread_cursor_end in any case. */
int kpti_thread_cursor_begin(kpti_thread_cursor *cursor, kpti_batcher *b, uint32_t track,
                             unsigned what);
/* Frees the cursor's memory and adds the repairs of its replay to *REPAIRS. */
void kpti_thread_cursor_end(kpti_thread_cursor *cursor, uint64_t *repairs);
/* Moves to the next activity. Returns 0 if there is no memory. The fast path does not branch on begin or end:
 * the processor can't predict that branch, and a misprediction takes as long as the rest. */
int kpti_thread_cursor_move_slow(kpti_thread_cursor *cursor);
static inline int kpti_thread_cursor_move(kpti_thread_cursor *cursor)
{
    kpt_activity *const a = &cursor->block[cursor->at];
    if (!cursor->takes_all || cursor->at == cursor->count || a->depth >= cursor->id_capacity)
        return kpti_thread_cursor_move_slow(cursor);
    cursor->at++;
    kpti_thread_cursor_set(cursor, a);
    return 1;
}

/* Returns the cursor's activity as it is delivered. Its id is the next one if a call begins, else the id that
 * the call began with. A further part has the id of the earlier part, if that has one. Call it once for each
 * activity. */
static inline kpti_altered kpti_thread_cursor_take(kpti_thread_cursor *cursor, uint64_t *last_id)
{
    uint32_t depth = cursor->activity->depth;
    int begins = cursor->phase != KPT_PHASE_END;
    kpti_altered out = {cursor->activity, 0, 0, cursor->end_ns, cursor->flags, cursor->phase};
    kpti_assert(depth < cursor->id_capacity && cursor->at <= cursor->count);
    if (kpti_thread_cursor_is_point(cursor)) {
        while (depth && cursor->ids[depth - 1] &
                            KPTI_THREAD_CURSOR_HIDDEN) /* the call around it is not delivered */
            depth--;
        out.parent_id = depth ? cursor->ids[depth - 1] : 0;
        return out;
    }
    if (__builtin_expect(out.flags & KPT_ACTIVITY_CONTINUED, 0)) {
        cursor->ids[depth] &= ~KPTI_THREAD_CURSOR_HIDDEN;
        begins = begins && !cursor->ids[depth];
    }
    *last_id += (uint64_t)begins;
    out.id = begins ? *last_id : cursor->ids[depth];
    out.parent_id = depth ? cursor->ids[depth - 1] : 0;
    kpti_assert(out.id && out.id <= *last_id && out.parent_id <= out.id);
    cursor->ids[depth] = out.id;
    return out;
}

#endif
