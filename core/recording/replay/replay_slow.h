/* replay_slow.h: the slow path of a replay: chunks, runs, gaps, rare events and calls without an exit. Only replay.c
 * calls it. */
#ifndef KPTI_CORE_RECORDING_REPLAY_REPLAY_SLOW_H
#define KPTI_CORE_RECORDING_REPLAY_REPLAY_SLOW_H

#include "core/recording/replay/replay_state.h"

/* Does one thing that the hot loop cannot do: take the next block or chunk, handle a rare event, close one call, or
 * grow the stack. *RECORD is borrowed until the next step. */
kpti_step kpti_replay_slow(kpti_replay *replay, kpti_call_record **record);

/* Reads the details at AT into CALL. Returns the index after them. */
uint32_t kpti_replay_details(const kpti_replay *r, uint32_t at, kpti_call_record *call);

#endif
