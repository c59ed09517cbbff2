/* track_begin.h: when a track begins, before it is replayed. */
#ifndef KPTI_CORE_RECORDING_REPLAY_TRACK_BEGIN_H
#define KPTI_CORE_RECORDING_REPLAY_TRACK_BEGIN_H

#include "core/recording/recording.h"

/* Returns the ticks of the first event of CHUNK, or 0 if its activity may begin earlier, as an open call does. */
uint64_t kpti_chunk_first_ticks(const kpti_chunk *chunk);

/* Returns ticks that no activity of TRACK is before, as replay corrects them: the time of the first event, if it is one
 * that has a time of its own; otherwise the start of the track's first run, or of the recording if the track has no activity. */
uint64_t kpti_track_begin(const kpti_recording *recording, uint32_t track);

#endif
