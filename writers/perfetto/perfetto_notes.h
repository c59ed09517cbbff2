/* perfetto_notes.h: users' notes in a Perfetto trace. Only the Perfetto writer uses this. */
#ifndef KPTI_WRITERS_PERFETTO_PERFETTO_NOTES_H
#define KPTI_WRITERS_PERFETTO_PERFETTO_NOTES_H

#include "writers/perfetto/perfetto_state.h"

kpt_status kpti_perfetto_note(kpti_perfetto *writer, const kpt_activity *point,
                              const kpti_note *note);
/* Ends the frame of the note BEGIN at NS. CALL ends at the same time, and may be NULL. */
void kpti_perfetto_end_frame(kpti_perfetto *writer, kpti_perfetto_track *track_state,
                             uint32_t begin, int64_t ns, const kpt_activity *call);
/* Writes the loose notes, after the last point. */
kpt_status kpti_perfetto_rest(kpti_perfetto *writer);

#endif
