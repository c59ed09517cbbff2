/* note_spans.h: the state of each note while a recording is written: whether and where its point was delivered,
 * and which spans are open on each thread.
 *
 * A span is a frame between the calls of its thread if it ends in the call in which it began and crosses no
 * other span; it then nests. Else it is loose, and is written beside the calls. Writers that receive calls in
 * time order find this out only at the span's end. For them a frame may end before its span does, with the call
 * in which it began, or after it, with the call in which the span ended. The span is loose in these cases too.
 * Only writers use this. */
#ifndef KPTI_WRITERS_FORMAT_NOTE_SPANS_H
#define KPTI_WRITERS_FORMAT_NOTE_SPANS_H

#include "writers/format/format.h"

typedef struct kpti_spans {
    kpti_heap heap;
    const kpti_notes *notes;
    struct kpti_note_state *note_states;  /* all notes, by number */
    struct kpti_span_track *track_states; /* by thread */
    uint32_t track_capacity;
    uint32_t frames; /* open frames of all tracks */
} kpti_spans;

/* A loose note: a span, or a note whose point was not delivered. */
typedef struct kpti_loose {
    const kpti_note *note; /* the begin note if there is one, else the end */
    uint32_t number;       /* number of that note */
    int64_t start_ns;
    int64_t end_ns;     /* for a span */
    uint64_t start_tid; /* the notes' OS thread ids */
    uint64_t end_tid;
    int began_before; /* the begin is not known */
    int stopped;      /* the end is not known */
} kpti_loose;

/* Uses the notes of WRITER, which must not change until free. Returns KPT_OK or KPT_E_MEMORY. */
kpt_status kpti_spans_init(kpti_spans *spans, const kpti_writer *writer);
void kpti_spans_free(kpti_spans *spans);

/* Records the point of a note that needs no frame and was written in its place. */
void kpti_spans_came(kpti_spans *spans, const kpt_activity *point);

/* Records the point of a begin. *IS_FRAME is set if a frame opens. */
kpt_status kpti_spans_begin(kpti_spans *spans, const kpt_activity *point, int *is_frame);

/* Records the point of an end. Returns the number of the last frame that ends here: the caller calls
 * kpti_spans_pop until it returns this number. Returns 0 if no frame ends. */
uint32_t kpti_spans_end(kpti_spans *spans, const kpt_activity *point, const kpti_note *end);

/* Removes the innermost frame of THREAD. Returns the number of its begin, or 0 if there is no frame. */
uint32_t kpti_spans_pop(kpti_spans *spans, uint32_t thread);

/* For writers that do not see calls end: removes the frame of a span that turned out not to be a frame. */
void kpti_spans_forget(kpti_spans *spans, uint32_t thread, uint32_t begin);

/* For writers that see calls end: removes the next frame that ends just before CALL does, since it began in
 * CALL, which may be a range. Returns the number of its begin, or 0. */
uint32_t kpti_spans_pop_of_call_slow(kpti_spans *spans, const kpt_activity *call);
static inline uint32_t kpti_spans_pop_of_call(kpti_spans *spans, const kpt_activity *call)
{
    return spans->frames ? kpti_spans_pop_of_call_slow(spans, call) : 0;
}

/* The same for a frame that ends just after CALL, since its span ended in CALL. */
uint32_t kpti_spans_pop_after_call_slow(kpti_spans *spans, const kpt_activity *call);
static inline uint32_t kpti_spans_pop_after_call(kpti_spans *spans, const kpt_activity *call)
{
    return spans->frames ? kpti_spans_pop_after_call_slow(spans, call) : 0;
}

/* Returns whether BEGIN has an end, on any thread. */
int kpti_spans_has_end(const kpti_spans *spans, uint32_t begin);

/* Records that a frame was written completely, so that it is not loose. */
void kpti_spans_written(kpti_spans *spans, uint32_t begin);

/* Returns the time of note NUMBER's point. */
int64_t kpti_spans_ns(const kpti_spans *spans, uint32_t number);

/* After all activities: fills OUT with the next note after *NUMBER that was not written. *NUMBER is 0 at first.
 * Returns 0 if there are no more. */
int kpti_spans_next(kpti_spans *spans, const kpti_writer *writer, uint32_t *number,
                    kpti_loose *out);

#endif
