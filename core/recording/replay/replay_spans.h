/* replay_spans.h: spans of the host in a replay: calls that would cross a span are cut (see span_clamps.h). Only
 * replay_slow.c calls it. */
#ifndef KPTI_CORE_RECORDING_REPLAY_REPLAY_SPANS_H
#define KPTI_CORE_RECORDING_REPLAY_REPLAY_SPANS_H

#include "core/recording/replay/replay_state.h"

/* The span at r->at, whose details follow, begins at NS: starts to cut the calls that end before the span does. FLAGS:
 * of its begin, if it is a range. */
kpti_step kpti_replay_begin_span(kpti_replay *r, int64_t ns, uint32_t flags);
/* A span ends at NS: starts to cut the calls that began within it. */
void kpti_replay_end_span(kpti_replay *r, uint32_t number, int64_t ns);
/* Sets pause: the next far end is due before the first event of the block that is later than it. */
void kpti_replay_find_pause(kpti_replay *r);
/* Applies the far end that is due. Its time is clamped to BEFORE_NS and NEXT_NS, whatever the converter returns. */
kpti_step kpti_replay_remote_end(kpti_replay *r, int64_t before_ns, int64_t next_ns);
/* The same among the events of a block. */
kpti_step kpti_replay_remote_end_in_block(kpti_replay *r);
/* The run ends, or there is a gap: ends one open range at NS with FLAGS. Returns 0 if no range is open. */
int kpti_replay_end_one_range(kpti_replay *r, int64_t ns, uint32_t flags);
/* The same for all spans that are not ranges. */
void kpti_replay_end_all_spans(kpti_replay *r);
/* Reports the range that is due. */
kpti_step kpti_replay_report_range(kpti_replay *r, kpti_call_record **record);
/* Cuts one call, and suspends it or replaces it by a clamped frame. The last step marks the calls that are not cut. */
kpti_step kpti_replay_cut_one(kpti_replay *r, kpti_call_record **record);
/* While calls are suspended: prepares the replay of the next event. Returns 0 if there is nothing to do. */
int kpti_replay_before_event(kpti_replay *r);
/* Begins the next part of one suspended call. */
kpti_step kpti_replay_resume_one(kpti_replay *r, kpti_call_record **record);

#endif
