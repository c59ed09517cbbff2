/* chrome_notes.h: users' notes as Chrome trace events: a mark is an instant, a counter a counter, a
 * span that nests between the calls is a complete event like them, any other an async one; notes that
 * have the same flow are connected by arrows. Only the Chrome writer uses this. */
#ifndef KPTI_WRITERS_CHROME_CHROME_NOTES_H
#define KPTI_WRITERS_CHROME_CHROME_NOTES_H

#include "writers/encode/escaped_strings.h"
#include "writers/format/note_spans.h"

typedef struct kpti_chrome_notes {
    kpti_writer *writer;
    kpti_spans spans;
    unsigned char *flow_roles; /* of all notes, by number: where each stands in its flow */
} kpti_chrome_notes;

kpt_status kpti_chrome_notes_init(kpti_chrome_notes *notes, kpti_writer *writer);

/* Writes the NOTE of a POINT, or waits for its partner. THREAD is as kpti_chrome_put has it. */
kpt_status kpti_chrome_notes_take(kpti_chrome_notes *notes, const kpt_activity *point,
                                  const kpti_note *note, kpti_fragment thread);

/* Writes those that are left once all points came. */
void kpti_chrome_notes_rest(kpti_chrome_notes *notes);

void kpti_chrome_notes_free(kpti_chrome_notes *notes);

#endif
