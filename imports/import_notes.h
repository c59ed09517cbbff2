/* import_notes.h: instant events and counters of a trace as notes. */
#ifndef KPTI_IMPORTS_IMPORT_NOTES_H
#define KPTI_IMPORTS_IMPORT_NOTES_H

#include "imports/import_names.h"
#include "imports/trace_event.h"
#include "writers/annotations/notes.h"

/* Adds the note INDEX of EVENT: an instant event has one, a counter one for each number in its arguments. BASE_NS is the
 * Unix time of the moment 0. Returns its number, or 0 if the event has no such note, or there is no memory. */
uint32_t kpti_import_note(kpti_notes *notes, kpti_import_texts *texts,
                          const kpti_trace_event *event, int64_t base_ns, uint32_t index);

#endif
