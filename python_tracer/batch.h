/* batch.h: batches in the making: activities, with the names and threads that they are the first to
 * refer to. A batch goes to the sink when it is full, and at the end.
 *
 * A function's index as a name is its id; garbage collections have one more (kpti_gc_function). */
#ifndef KPTI_BATCH_H
#define KPTI_BATCH_H

#include "deliver.h"

/* What a delivery knows of a function; kind 0: its name has not been delivered. */
typedef struct kpti_name_note {
    uint32_t kind;
    uint32_t first_line; /* 0 where a line makes no sense */
} kpti_name_note;

typedef struct kpti_batcher {
    kpt_activity *activities;
    uint32_t count;
    uint32_t room;         /* for activities, 1 at least: when it is used up the batch is sent */
    kpti_name_note *notes; /* by name */
    kpt_status status;     /* what stopped the delivery, or KPT_OK */
    uint32_t last_thread;  /* the one of the activity before: its thread has been delivered */
    int64_t end_ns;        /* nothing ends after it: the delivery's, or the end of time */

    const kpti_env *env;
    const kpti_recording *recording;
    const kpt_delivery *delivery;
    kpti_timebase timebase;
    kpt_name *names;
    kpt_thread *threads;
    uint32_t name_count;
    uint32_t name_room;
    uint32_t thread_count;
    uint32_t thread_room;
    uint32_t gc_name;
    uint8_t *delivered_threads; /* by track */
} kpti_batcher;

/* 0 when there is no memory; kpti_batcher_free is to be called in any case. */
int kpti_batcher_init(kpti_batcher *b, const kpti_delivery_job *job);
void kpti_batcher_free(kpti_batcher *b);

/* A replay of a track in the delivery's time. NULL when there is no memory. */
kpti_replay *kpti_batcher_replay(const kpti_batcher *b, uint32_t track, uint64_t first_id);

/* Sends what there is. Also returns b->status. */
kpt_status kpti_batcher_send(kpti_batcher *b);

/* Whether an activity that begins then is delivered at all: what began after the delivery's end is not,
 * as its host asked for what was before. */
static inline int kpti_batcher_wants(const kpti_batcher *b, int64_t start_ns)
{
    return start_ns <= b->end_ns;
}

/* Cuts what would outlive the delivery. Keeps the nesting, and the order within the thread: whatever
 * ends later is moved to the same place. */
static inline void kpti_batcher_cut(const kpti_batcher *b, int64_t *end_ns, uint32_t *flags)
{
    if (*end_ns <= b->end_ns) return;
    *end_ns = b->end_ns;
    *flags |= KPT_ACTIVITY_CLAMPED;
}

/* Completes the activities that were written behind the batch's count, FILLED of them, all of one
 * TRACK: what is not wanted goes, what is too long is cut, names are looked up. Sends the batch if it is
 * full; 0 if the delivery is over, by b->status. DELIVERED grows by what is left. */
int kpti_batcher_complete(kpti_batcher *b, uint32_t track, uint32_t filled, uint64_t *delivered);

/* Adds one activity, of a call that is wanted, as it is. 0 if the delivery is over, by b->status. */
int kpti_batcher_add(kpti_batcher *b, uint32_t track, const kpti_call_record *call, uint32_t phase);

#endif
