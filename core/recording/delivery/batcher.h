/* batcher.h: collects activities into batches, with the names and threads that they are the first to refer to.
 * A batch is sent to the sink when it is full, and at the end.
 *
 * A function's name index is its id. Garbage collections, points and ranges have the next indices (replay_types.h).
 * The name of a range is a text in its events, and so are inputs; the texts of a delivery get the
 * indices after these, as they are met. */
#ifndef KPTI_CORE_RECORDING_DELIVERY_BATCHER_H
#define KPTI_CORE_RECORDING_DELIVERY_BATCHER_H

#include "core/base/assert.h"
#include "core/recording/delivery/delivery_job.h"
#include "core/recording/delivery/host_texts.h"
#include "core/recording/replay/replay.h"

/* The kind and line of a name, by name index. kind is 0 until the name is delivered. */
typedef struct kpti_name_note {
    uint32_t kind;
    uint32_t first_line; /* 0 if a line makes no sense */
} kpti_name_note;

typedef struct kpti_batcher {
    kpt_activity *activities;
    uint32_t count;
    uint32_t capacity;     /* capacity for activities, at least 1; a full batch is sent */
    kpti_name_note *notes; /* by name */
    kpt_status status;     /* KPT_OK, or the status that ended the delivery */
    uint32_t last_thread;  /* thread of the previous activity, already delivered */
    /* an activity is delivered only if it has one of these flags; 0: no condition */
    uint32_t needed;
    int64_t end_ns; /* end of the delivery, or INT64_MAX; no activity ends later */

    const kpti_env *env;
    const kpti_recording *recording;
    const kpt_delivery *delivery;
    kpti_timebase timebase;
    kpt_name *names;
    kpt_thread *threads;
    uint32_t name_count;
    uint32_t name_capacity;
    uint32_t thread_count;
    uint32_t thread_capacity;
    uint32_t gc_name;
    uint32_t point_name;
    uint32_t range_begin_name;
    uint32_t last_name; /* the last index that is not of a text */
    kpti_host_texts texts;
    int has_inputs;             /* inputs of operators and ranges are delivered */
    int no_memory;              /* for a text; ends the delivery */
    unsigned points;            /* of KPTI_POINTS and KPTI_RANGES, those that are delivered */
    int parts;                  /* calls that are cut continue in a second part */
    uint8_t *delivered_threads; /* by track */
} kpti_batcher;

static inline int kpti_batcher_is_valid(const kpti_batcher *b)
{
    return b->capacity >= 1 && b->count <= b->capacity && b->name_count <= b->name_capacity &&
           b->thread_count <= b->thread_capacity && b->point_name == b->gc_name + 1 &&
           b->last_name == b->gc_name + 3;
}

/* Returns 0 if there is no memory. The caller must call kpti_batcher_free in any case. */
int kpti_batcher_init(kpti_batcher *b, const kpti_delivery_job *job);
void kpti_batcher_free(kpti_batcher *b);

/* Makes a replay of a track with the delivery's clock; PARTS applies only if the delivery has
 * KPT_DELIVER_PARTS. Returns NULL if there is no memory. A first pass needs no inputs of operators. */
kpti_replay *kpti_batcher_replay(kpti_batcher *b, uint32_t track, uint64_t first_id,
                                 kpti_parts parts);
kpti_replay *kpti_batcher_first_pass(kpti_batcher *b, uint32_t track);

/* Sends the current batch to the sink. Returns b->status. */
kpt_status kpti_batcher_send(kpti_batcher *b);

/* Returns whether an activity that begins at START_NS is delivered. Activities that begin after the delivery's
 * end are not, since the host requested those before it. */
static inline int kpti_batcher_wants(const kpti_batcher *b, int64_t start_ns)
{
    return start_ns <= b->end_ns;
}

/* Cuts an activity at the delivery's end. Nesting and order within the thread are kept, since all later ends
 * are moved to the same time. */
static inline void kpti_batcher_cut(const kpti_batcher *b, int64_t *end_ns, uint32_t *flags)
{
    if (*end_ns <= b->end_ns) return;
    *end_ns = b->end_ns;
    *flags |= KPT_ACTIVITY_CLAMPED;
}

/* Returns where the next activities are to be written. There is space for at least one. */
static inline kpt_activity *kpti_batcher_next(kpti_batcher *b)
{
    kpti_assert(b->count < b->capacity);
    return &b->activities[b->count];
}

/* Adds the FILLED activities that were written there: ends of calls of TRACK, or points. Removes those that
 * begin after the delivery's end, cuts those that end after it, and looks up names. Sends the batch if it is
 * full. Returns 0 if the delivery is over; b->status has the reason. *DELIVERED grows by the calls that are
 * left, with a needed flag or not, but not by further parts of calls. */
int kpti_batcher_add_ends(kpti_batcher *b, uint32_t track, uint32_t filled, uint64_t *delivered);

/* An activity that is delivered with other fields than the replay wrote. */
typedef struct kpti_altered {
    const kpt_activity *activity; /* has all other fields */
    uint64_t id;
    uint64_t parent_id;
    int64_t end_ns;
    uint32_t flags;
    uint32_t phase;
} kpti_altered;

/* Returns the note of a name. The name is delivered if it is new. */
void kpti_batcher_add_name(kpti_batcher *b, uint32_t name);
/* Replaces the name of OUT, the begin of a range, which is A in the replay, by that of its text. */
void kpti_batcher_name_range(kpti_batcher *b, const kpt_activity *a, kpt_activity *out);
/* Delivers the text with INDEX, unless it was delivered before. */
void kpti_batcher_add_text(kpti_batcher *b, uint32_t index);
static inline kpti_name_note kpti_batcher_note(kpti_batcher *b, uint32_t name)
{
    if (__builtin_expect(!b->notes[name].kind, 0)) kpti_batcher_add_name(b, name);
    return b->notes[name];
}

/* Delivers a thread, unless it was delivered before. */
void kpti_batcher_add_thread(kpti_batcher *b, uint32_t track);

/* Returns the line of an activity. If none was recorded and the call did not begin before the recording, that
 * is the first line of the function. */
static inline uint32_t kpti_batcher_line(const kpt_activity *a, kpti_name_note note)
{
    return a->line || a->flags & KPT_ACTIVITY_BEGAN_BEFORE ? a->line : note.first_line;
}

/* Returns whether A, whose name has NOTE, has inputs: the line of an operator is the index of a text. */
static inline int kpti_batcher_has_inputs(const kpt_activity *a, kpti_name_note note)
{
    return note.kind == KPT_KIND_OPERATOR && a->line;
}

/* Adds one activity. Returns 0 if the delivery is over; b->status has the reason. It reads nothing back from
 * OUT, since a load after a wider store waits for that store. */
static inline int kpti_batcher_add(kpti_batcher *b, kpti_altered altered)
{
    const kpt_activity *const a = altered.activity;
    kpti_name_note note;
    kpt_activity *out;
    kpti_assert(b->count < b->capacity && kpti_batcher_wants(b, a->start_ns));
    kpti_assert(altered.end_ns >= a->start_ns && altered.end_ns <= b->end_ns);
    if (b->needed && !(altered.flags & b->needed) && a->name < b->point_name) return 1;
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
    if (__builtin_expect(a->name == b->range_begin_name, 0)) kpti_batcher_name_range(b, a, out);
    if (__builtin_expect(b->has_inputs, 0) && kpti_batcher_has_inputs(a, note))
        kpti_batcher_add_text(b, a->line);
    return b->count < b->capacity || kpti_batcher_send(b) == KPT_OK;
}

#endif
