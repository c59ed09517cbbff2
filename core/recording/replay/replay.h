/* replay.h: turns one thread's events into calls, in a single pass with a stack: no sort, no hash, and no
 * allocation per event. Replay repairs these cases, which real interpreters produce, and counts each repair:
 *
 *   an exit of a function that is open further down closes the calls above it, flagged RECOVERED. Such calls
 *     are enters without exits, for example of a bound C method called with a star. Each closed call counts;
 *   an exit of a function that is not open is ignored;
 *   a garbage collection that begins within another closes that one, flagged RECOVERED, so collections never
 *     nest;
 *   ticks that go backwards are replaced by the last ticks;
 *   calls from OPEN events begin with the run, or with the chunk after a gap, flagged BEGAN_BEFORE. Calls that
 *     were open before a gap are closed at the last event before it, flagged RECOVERED. Each closed call counts;
 *   invalid events (unknown kinds, a missing second word, a LINE without a call), and chunks of a run that does
 *     not exist, are skipped.
 *
 * Marks of the host flag the open calls MARKED. Spans of the host cut the calls that would cross them, flagged
 * CLAMPED (see span_clamps.h). A reader that asks for parts gets the rest of such a call, flagged CONTINUED.
 * A span with a name is a range: its begin and its end are reported where they are. None of these is a repair.
 *
 * Calls that are open when a run ends are closed there and flagged ENDED_BY_STOP, which is no repair. For the
 * last run the reader may pass that end.
 *
 * Events may have any content, as a chunk may come from a damaged file: replay never reads past a chunk's
 * count, times never go backwards, and only memory limits the stack. */
#ifndef KPTI_CORE_RECORDING_REPLAY_REPLAY_H
#define KPTI_CORE_RECORDING_REPLAY_REPLAY_H

#include "core/recording/replay/replay_types.h"

/* Makes a replay of one track, with memory from ENV. Returns NULL if there is no memory. */
kpti_replay *kpti_replay_new(const kpti_env *env, const kpti_recording *recording, uint32_t track,
                             uint64_t first_id, const kpti_timebase *timebase,
                             kpti_replay_options options);
void kpti_replay_free(kpti_replay *replay);

/* Writes the next activities, at most CAPACITY; *COUNT receives how many. They are in time order. WHAT, the same in
 * each call, selects begins (with the fields known then, and end_ns equal to start_ns), ends, or both, and
 * points that the host has numbered, as complete activities with id 0. Ids are numbered in pre-order from
 * first_id. A name is a function's id, kpti_gc_function or one of the indices after it. kind is 0 here, and so is
 * a line that was not recorded; the caller fills them in from the function.
 *
 * The begin of a range has the address of its first TEXT event as id, and their number as line. The address is valid
 * until the next call. */
kpti_filled kpti_replay_fill(kpti_replay *replay, unsigned what, kpt_activity *activities,
                             uint32_t capacity, uint32_t *count);

/* Return the number of repairs made so far, and of calls begun so far. */
uint64_t kpti_replay_repairs(const kpti_replay *replay);
uint64_t kpti_replay_calls(const kpti_replay *replay);

#endif
