/* notes.h: the log of users' notes: marks, spans and counters. The recording has a point with a number for each
 * note, and the log has the note of that number. A flight recorder drops the oldest notes.
 *
 * Numbers are assigned in time order, from 1. One thread at a time; callers that add must lock. */
#ifndef KPTI_WRITERS_ANNOTATIONS_NOTES_H
#define KPTI_WRITERS_ANNOTATIONS_NOTES_H

#include "core/base/assert.h"
#include "core/base/growable_array.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    KPTI_NOTE_MARK = 1,
    KPTI_NOTE_BEGIN = 2,
    KPTI_NOTE_END = 3,
    KPTI_NOTE_COUNTER = 4,
    KPTI_NOTE_TASK = 5 /* only for asyncio: each of its points begins a resume of the task */
};

typedef struct kpti_note {
    uint32_t what;    /* KPTI_NOTE_* */
    uint32_t partner; /* for an end: the number of its begin */
    kpt_str name;
    /* JSON members without the braces: "\"epoch\":3,\"x\":\"y\""; for a task: the name of its coroutine, plain */
    kpt_str args;
    double value;    /* for a counter */
    uint64_t flow;   /* if not 0: marks and begins with the same flow are connected */
    int64_t ns;      /* Unix time of the note; 0 for a task */
    uint64_t os_tid; /* thread of the note; 0 for a task */
} kpti_note;

/* Zeroed at first, except for heap. Invariant: the notes first … first + count - 1 are stored; first 0 is read
 * as 1. */
typedef struct kpti_notes {
    kpti_heap heap;
    kpti_note *entries;                   /* a ring; its capacity is 0 or a power of two */
    struct kpti_note_texts *oldest_texts; /* blocks of texts, in the order of their notes */
    struct kpti_note_texts *newest_texts;
    uint32_t capacity;
    uint32_t first;
    uint32_t count;
} kpti_notes;

static inline int kpti_notes_are_valid(const kpti_notes *notes)
{
    return kpti_is_power_or_zero(notes->capacity) && notes->count <= notes->capacity &&
           !notes->oldest_texts == !notes->newest_texts;
}

/* Stores a copy of NOTE. Returns its number, or 0 if there is no memory or no number left. */
uint32_t kpti_notes_add(kpti_notes *notes, const kpti_note *note);

/* Returns whether ARGS is valid between the braces of a JSON object: members separated by commas, as UTF-8, or
 * nothing. For notes read from a file. */
int kpti_note_args_are_json(kpt_str args);

/* Returns the note, owned by the log until it is dropped, or NULL if it was dropped or never added. */
const kpti_note *kpti_notes_get(const kpti_notes *notes, uint64_t number);

/* Drops all notes except the last COUNT. */
void kpti_notes_keep_last(kpti_notes *notes, uint32_t count);

void kpti_notes_free(kpti_notes *notes);

/* Returns the number of the oldest stored note. */
static inline uint32_t kpti_notes_first(const kpti_notes *notes)
{
    return notes->first ? notes->first : 1;
}

#ifdef __cplusplus
}
#endif
#endif
