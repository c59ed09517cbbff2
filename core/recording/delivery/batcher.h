/* batcher.h: batches in the making: activities, with the names and threads that they are the first to
 * refer to. A batch goes to the sink when it is full, and at the end.
 *
 * A function's index as a name is its id; garbage collections and points have two more (replay.h). */
#ifndef KPTI_CORE_RECORDING_DELIVERY_BATCHER_H
#define KPTI_CORE_RECORDING_DELIVERY_BATCHER_H

#include "core/recording/delivery/delivery_job.h"
#include "core/recording/replay/replay.h"

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
    uint32_t needed;       /* flags one of which an activity must have to be delivered; 0: none */
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
    uint32_t point_name;
    unsigned points;            /* KPTI_POINTS, if they are delivered; else 0 */
    int parts;                  /* calls that are cut go on */
    uint8_t *delivered_threads; /* by track */
} kpti_batcher;

/* 0 when there is no memory; kpti_batcher_free is to be called in any case. */
int kpti_batcher_init(kpti_batcher *b, const kpti_delivery_job *job);
void kpti_batcher_free(kpti_batcher *b);

/* A replay of a track in the delivery's time; in PARTS only if the delivery is. NULL when there is no memory. */
kpti_replay *kpti_batcher_replay(const kpti_batcher *b, uint32_t track, uint64_t first_id,
                                 kpti_parts parts);

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

/* Where the next activities are to be written; there is room for one at least. */
static inline kpt_activity *kpti_batcher_next(kpti_batcher *b)
{
    return &b->activities[b->count];
}

/* Adds the FILLED activities that were written there, each the end of a call of TRACK: what is not
 * wanted goes, what is too long is cut, names are looked up; or points. Sends the batch if it is full; 0 if the
 * delivery is over, by b->status. DELIVERED grows by the calls that are left, needed flags or not, but not by
 * further parts of calls. */
int kpti_batcher_add_ends(kpti_batcher *b, uint32_t track, uint32_t filled, uint64_t *delivered);

/* An activity that is delivered with other fields than a replay wrote. */
typedef struct kpti_altered {
    const kpt_activity *activity; /* but for … */
    uint64_t id;
    uint64_t parent_id;
    int64_t end_ns;
    uint32_t flags;
    uint32_t phase;
} kpti_altered;

/* What is known of a name, which is delivered if it is new. */
void kpti_batcher_add_name(kpti_batcher *b, uint32_t name);
static inline kpti_name_note kpti_batcher_note(kpti_batcher *b, uint32_t name)
{
    if (__builtin_expect(!b->notes[name].kind, 0)) kpti_batcher_add_name(b, name);
    return b->notes[name];
}

/* Delivers a thread, unless it has been. */
void kpti_batcher_add_thread(kpti_batcher *b, uint32_t track);

/* The line of an activity, where none was recorded: where its function begins, if it did. */
static inline uint32_t kpti_batcher_line(const kpt_activity *a, kpti_name_note note)
{
    return a->line || a->flags & KPT_ACTIVITY_BEGAN_BEFORE ? a->line : note.first_line;
}

/* Adds one activity. 0 if the delivery is over, by b->status. (Nothing is read from OUT: a load behind a
 * wider store waits for it.) */
static inline int kpti_batcher_add(kpti_batcher *b, kpti_altered altered)
{
    const kpt_activity *const a = altered.activity;
    kpti_name_note note;
    kpt_activity *out;
    if (b->needed && !(altered.flags & b->needed) && a->name != b->point_name) return 1;
    note = kpti_batcher_note(b, a->name);
    out = &b->activities[b->count++];
    if (a->thread != b->last_thread) kpti_batcher_add_thread(b, a->thread);
    *out = *a;
    out->id = altered.id;
    out->parent_id = altered.parent_id;
    out->end_ns = altered.end_ns;
    out->flags = altered.flags;
    out->phase = (uint16_t)altered.phase;
    out->kind = (uint16_t)note.kind;
    out->line = kpti_batcher_line(a, note);
    return b->count < b->room || kpti_batcher_send(b) == KPT_OK;
}

#endif
