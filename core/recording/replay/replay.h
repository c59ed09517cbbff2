/* replay.h: one thread's events as calls: a single pass with a stack, no sort, no hash and no
 * allocation per event. It repairs what real interpreters do, and counts each repair:
 *
 *   an exit whose function is open further down closes what lies above it, flagged RECOVERED: enters
 *     without exits, as of a bound C method that is called with a star; each closed one counts;
 *   an exit whose function is not open is ignored;
 *   a garbage collection that begins within another closes that one, flagged RECOVERED, so they never
 *     nest;
 *   ticks that go backwards are taken as equal to the last;
 *   calls that OPEN events tell of begin with the run, or with the chunk after a gap, flagged
 *     BEGAN_BEFORE; what was open before a gap is closed at the last event before it, flagged
 *     RECOVERED; each closed one counts;
 *   events that can't be (unknown kinds, a missing second word, a LINE of nothing), and chunks of a
 *     run that does not exist, are skipped.
 *
 * Marks of the host's flag the open calls MARKED; its spans cut those that would cross them, flagged
 * CLAMPED (see span_clamps.h); a reader that asks for parts gets the rest of such a call, flagged CONTINUED. None of
 * this is a repair.
 *
 * What is open when a run ends is closed there and flagged ENDED_BY_STOP, which is no repair; at the end
 * of the last run, the reader may say when that is.
 *
 * Events may be anything at all, as a chunk may come from a damaged file: nothing is read past a
 * chunk's count, times never go backwards, and the stack is bounded by memory only. */
#ifndef KPTI_CORE_RECORDING_REPLAY_REPLAY_H
#define KPTI_CORE_RECORDING_REPLAY_REPLAY_H

#include "core/recording/replay/replay_types.h"

/* A replay of one track. ENV lends the memory. NULL when there is none. */
kpti_replay *kpti_replay_new(const kpti_env *env, const kpti_recording *recording, uint32_t track,
                             uint64_t first_id, const kpti_timebase *timebase, kpti_parts parts);
void kpti_replay_free(kpti_replay *replay);

/* Writes the next activities, ROOM of them or fewer; COUNT receives how many. They come in time order,
 * as WHAT says: at their begins, with what is known then and an end_ns that is their start, at their
 * ends, or both; points that the host has numbered, if they are wanted, where they lie, as complete ones
 * with the id 0. WHAT is the same in each call. Ids are numbered in pre-order from first_id. A name is
 * a function's id, kpti_gc_function or kpti_point_function. kind, and a line that was not recorded, are the function's
 * business, and 0 here. */
kpti_filled kpti_replay_fill(kpti_replay *replay, unsigned what, kpt_activity *activities,
                             uint32_t room, uint32_t *count);

/* How many repairs were made so far, and calls begun. */
uint64_t kpti_replay_repairs(const kpti_replay *replay);
uint64_t kpti_replay_calls(const kpti_replay *replay);

#endif
