/* notes.h: the log of what users noted themselves: marks, spans and counters. The recording has a
 * point for each, with its number; the log says what the number means. A flight recorder drops the
 * oldest.
 *
 * Numbers are given in the order of time, from 1. One thread at a time; who adds locks. */
#ifndef KPTI_WRITERS_ANNOTATIONS_NOTES_H
#define KPTI_WRITERS_ANNOTATIONS_NOTES_H

#include "core/base/growable_array.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    KPTI_NOTE_MARK = 1,
    KPTI_NOTE_BEGIN = 2,
    KPTI_NOTE_END = 3,
    KPTI_NOTE_COUNTER = 4,
    KPTI_NOTE_TASK = 5 /* nobody's but asyncio's: each of its points begins a resume of the task */
};

typedef struct kpti_note {
    uint32_t what;    /* KPTI_NOTE_* */
    uint32_t partner; /* of an end: the number of its begin */
    kpt_str name;
    kpt_str args;    /* JSON members without the braces: "\"epoch\":3,\"x\":\"y\""; of a task: its
                      coroutine's name, plain */
    double value;    /* of a counter */
    uint64_t flow;   /* not 0: marks and begins that have the same are connected */
    int64_t ns;      /* Unix time when it was made; of a task 0 */
    uint64_t os_tid; /* the same */
} kpti_note;

/* Begins as zeroes with a heap. Invariant: the notes first … first + count - 1 are there; first is
 * read as 1 while it is 0. */
typedef struct kpti_notes {
    kpti_heap heap;
    kpti_note *entries;                   /* a ring of capacity, which is 0 or a power of two */
    struct kpti_note_texts *oldest_texts; /* blocks of texts, in the order of their notes */
    struct kpti_note_texts *newest_texts;
    uint32_t capacity;
    uint32_t first;
    uint32_t count;
} kpti_notes;

/* Keeps a copy of NOTE. Returns its number; 0 when there is no memory, or no number left. */
uint32_t kpti_notes_add(kpti_notes *notes, const kpti_note *note);

/* Whether ARGS can stand between the braces of a JSON object: members with commas between them, as UTF-8, or
 * nothing. For those of a note that comes from a file. */
int kpti_note_args_are_json(kpt_str args);

/* NULL: dropped, or never made. It is the log's, until it is dropped. */
const kpti_note *kpti_notes_get(const kpti_notes *notes, uint64_t number);

/* Drops all but the last COUNT. */
void kpti_notes_keep_last(kpti_notes *notes, uint32_t count);

void kpti_notes_free(kpti_notes *notes);

/* The number of the oldest that is there. */
static inline uint32_t kpti_notes_first(const kpti_notes *notes)
{
    return notes->first ? notes->first : 1;
}

#ifdef __cplusplus
}
#endif
#endif
