/* perfetto_notes.h: the user's notes in a Perfetto trace. Only the Perfetto writer uses this. */
#ifndef KPTI_WRITERS_PERFETTO_PERFETTO_NOTES_H
#define KPTI_WRITERS_PERFETTO_PERFETTO_NOTES_H

#include "writers/perfetto/perfetto_state.h"

kpt_status kpti_perfetto_note(kpti_perfetto *writer, const kpt_activity *point,
                              const kpti_note *note);
/* The frame of the note BEGIN ends at NS; so does CALL, which may be NULL. */
void kpti_perfetto_end_frame(kpti_perfetto *writer, kpti_perfetto_lane *lane, uint32_t begin,
                             int64_t ns, const kpt_activity *call);
/* Writes the loose notes, once all points have come. */
kpt_status kpti_perfetto_rest(kpti_perfetto *writer);

#endif
