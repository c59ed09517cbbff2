/* note_spans.h: what became of each note while a recording is written: whether and where its point came,
 * and which spans are open on each thread.
 *
 * A span is a frame between the calls of its thread if it ends in the call that it began in and
 * crosses no other span: then it nests. Otherwise it is loose, and stands beside the calls. Writers
 * that get calls in the order of time learn that at its end only: for them a frame may end before
 * its span does, with the call that it began in, or after it, with the call that the end was in; the
 * span is loose then, too. Only writers use this. */
#ifndef KPTI_WRITERS_FORMAT_NOTE_SPANS_H
#define KPTI_WRITERS_FORMAT_NOTE_SPANS_H

#include "writers/format/format.h"

typedef struct kpti_spans {
    kpti_heap heap;
    const kpti_notes *notes;
    struct kpti_note_fate *fates; /* of all notes, by number */
    struct kpti_span_lane *lanes; /* by thread */
    uint32_t lane_capacity;
    uint32_t frames; /* in all lanes */
} kpti_spans;

/* A loose note: a span, or one whose point never came. */
typedef struct kpti_loose {
    const kpti_note *note; /* the begin, if there is one */
    uint32_t number;       /* of that note */
    int64_t start_ns;
    int64_t end_ns;     /* of a span */
    uint64_t start_tid; /* as the notes have them */
    uint64_t end_tid;
    int began_before; /* its begin is not known */
    int stopped;      /* nor its end */
} kpti_loose;

/* Takes the notes of WRITER, which do not change until free. KPT_OK or KPT_E_MEMORY. */
kpt_status kpti_spans_init(kpti_spans *spans, const kpti_writer *writer);
void kpti_spans_free(kpti_spans *spans);

/* The point of a note came, which needs nothing but to be written where it is. */
void kpti_spans_came(kpti_spans *spans, const kpt_activity *point);

/* The point of a begin came. *IS_FRAME: a frame opens. */
kpt_status kpti_spans_begin(kpti_spans *spans, const kpt_activity *point, int *is_frame);

/* The point of an end came. Not 0: frames end here, those that kpti_spans_pop gives up to and with
 * the one of this number. 0: none does. */
uint32_t kpti_spans_end(kpti_spans *spans, const kpt_activity *point, const kpti_note *end);

/* Takes the innermost frame off its thread: the number of its begin; 0: there is none. */
uint32_t kpti_spans_pop(kpti_spans *spans, uint32_t thread);

/* For writers that see no call end: the span is no frame after all. */
void kpti_spans_forget(kpti_spans *spans, uint32_t thread, uint32_t begin);

/* For those that do: the next frame that ends just before a CALL does, since it began in that. */
uint32_t kpti_spans_pop_of_call_slow(kpti_spans *spans, const kpt_activity *call);
static inline uint32_t kpti_spans_pop_of_call(kpti_spans *spans, const kpt_activity *call)
{
    return spans->frames ? kpti_spans_pop_of_call_slow(spans, call) : 0;
}

/* And just after it, since the span's end was in that. */
uint32_t kpti_spans_pop_after_call_slow(kpti_spans *spans, const kpt_activity *call);
static inline uint32_t kpti_spans_pop_after_call(kpti_spans *spans, const kpt_activity *call)
{
    return spans->frames ? kpti_spans_pop_after_call_slow(spans, call) : 0;
}

/* Whether there is an end to BEGIN, wherever it is. */
int kpti_spans_has_end(const kpti_spans *spans, uint32_t begin);

/* A frame was written whole: it is not loose. */
void kpti_spans_written(kpti_spans *spans, uint32_t begin);

/* When the point of note NUMBER came. */
int64_t kpti_spans_ns(const kpti_spans *spans, uint32_t number);

/* Once all came: the next note that was not written, from *NUMBER on, which begins as 0; 0: there is
 * none. */
int kpti_spans_next(kpti_spans *spans, const kpti_writer *writer, uint32_t *number,
                    kpti_loose *out);

#endif
