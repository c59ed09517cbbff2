/* thread_cursor.h: one thread on its way into a delivery that has to choose or to number: its activities one by
 * one, only those that are delivered. Ids are given as activities are taken, of all lanes together, and
 * kept here for the callees and the ends. */
#ifndef KPTI_CORE_RECORDING_DELIVERY_THREAD_CURSOR_H
#define KPTI_CORE_RECORDING_DELIVERY_THREAD_CURSOR_H

#include "core/recording/delivery/call_outcomes.h"

enum { KPTI_LANE_BLOCK = 128 };

/* In the id of an open call: this part of it is not delivered, nor are the calls in it. */
#define KPTI_LANE_HIDDEN (UINT64_C(1) << 63)

/* (Fields that are written alone do not stand together: a load of both would wait for the stores.) */
typedef struct kpti_lane {
    int64_t when_ns;        /* the time of the next activity, which is … */
    kpt_activity *activity; /* … this one, NULL where there is none; but it has … */
    uint32_t flags;         /* … these flags … */
    unsigned what;
    int64_t end_ns;   /* … this end … */
    uint32_t phase;   /* … this phase, and other ids */
    kpti_filled left; /* whether there are more than those in the block */
    uint32_t at;      /* the next in the block */
    int takes_all;    /* every call is delivered */
    uint32_t count;
    int with_fates;
    uint64_t
        *ids; /* of the open calls, by depth; or KPTI_LANE_HIDDEN, with the id of an earlier part */
    uint64_t id_room;
    const kpti_batcher *b;
    kpti_replay *replay;
    kpti_fates fates;
    uint64_t gcs; /* begun so far */
    kpt_activity block[KPTI_LANE_BLOCK];
} kpti_lane;

/* Whether the lane's activity is a point, and no call. */
static inline int kpti_lane_is_point(const kpti_lane *lane)
{
    return lane->activity->phase == KPT_PHASE_COMPLETE;
}

/* Makes A the lane's activity. */
static inline void kpti_lane_set(kpti_lane *lane, kpt_activity *a)
{
    lane->activity = a;
    lane->end_ns = a->end_ns;
    lane->flags = a->flags;
    lane->phase = a->phase;
    lane->when_ns = a->end_ns; /* a begin's is its start */
}

/* Readies the lane, which is zeroes, for TRACK, and moves it to its first activity. With KPTI_BEGINS
 * each call comes once, when it begins, and is complete; with KPTI_ENDS as well, as a begin and an end. 0
 * when there is no memory; kpti_lane_end is to be called in any case. */
int kpti_lane_begin(kpti_lane *lane, const kpti_batcher *b, uint32_t track, unsigned what);
/* Adds the repairs that were made. */
void kpti_lane_end(kpti_lane *lane, uint64_t *repairs);
/* Moves on to the next activity. 0 when there is no memory. (The fast path does not ask whether it
 * begins or ends: the processor can't guess that, and would lose as much time as the rest takes.) */
int kpti_lane_move_slow(kpti_lane *lane);
static inline int kpti_lane_move(kpti_lane *lane)
{
    kpt_activity *const a = &lane->block[lane->at];
    if (!lane->takes_all || lane->at == lane->count || a->depth >= lane->id_room)
        return kpti_lane_move_slow(lane);
    lane->at++;
    kpti_lane_set(lane, a);
    return 1;
}

/* The lane's activity as it is delivered. Its id is the next one if a call begins, or the one that it began
 * with; a further part has the id of the part before, if that had one. Once for each activity. */
static inline kpti_altered kpti_lane_take(kpti_lane *lane, uint64_t *last_id)
{
    uint32_t depth = lane->activity->depth;
    int begins = lane->phase != KPT_PHASE_END;
    kpti_altered out = {lane->activity, 0, 0, lane->end_ns, lane->flags, lane->phase};
    if (kpti_lane_is_point(lane)) {
        while (depth && lane->ids[depth - 1] &
                            KPTI_LANE_HIDDEN) /* it lies in a call that is not delivered */
            depth--;
        out.parent_id = depth ? lane->ids[depth - 1] : 0;
        return out;
    }
    if (__builtin_expect(out.flags & KPT_ACTIVITY_CONTINUED, 0)) {
        lane->ids[depth] &= ~KPTI_LANE_HIDDEN;
        begins = begins && !lane->ids[depth];
    }
    *last_id += (uint64_t)begins;
    out.id = begins ? *last_id : lane->ids[depth];
    out.parent_id = depth ? lane->ids[depth - 1] : 0;
    lane->ids[depth] = out.id;
    return out;
}

#endif
