/* chrome_notes.h: users' notes as Chrome trace events. A mark is an instant event, and a counter a counter
 * event. A span that nests between the calls is a complete event like them; any other span is an async event.
 * Notes with the same flow are connected by arrows. Only the Chrome writer uses this. */
#ifndef KPTI_WRITERS_CHROME_CHROME_NOTES_H
#define KPTI_WRITERS_CHROME_CHROME_NOTES_H

#include "writers/encode/escaped_strings.h"
#include "writers/format/note_spans.h"

typedef struct kpti_chrome_notes {
    kpti_writer *writer;
    kpti_spans spans;
    unsigned char *flow_roles; /* by number of the note: its position in its flow */
} kpti_chrome_notes;

kpt_status kpti_chrome_notes_init(kpti_chrome_notes *notes, kpti_writer *writer);

/* Writes the NOTE of a POINT, or stores it until its partner is delivered. THREAD is as in kpti_chrome_put. */
kpt_status kpti_chrome_notes_take(kpti_chrome_notes *notes, const kpt_activity *point,
                                  const kpti_note *note, kpti_fragment thread);

/* Writes the remaining notes after the last point. */
void kpti_chrome_notes_rest(kpti_chrome_notes *notes);

void kpti_chrome_notes_free(kpti_chrome_notes *notes);

#endif
