/* span_clamps.h: spans of the host's among a thread's calls. A call that contains the begin of a span, but not its
 * end, would cross it, and is cut where the span begins. That must be known at the begin, so a first pass
 * finds out which calls last; the second cuts the others. One that contains the end, but not the begin, is
 * cut where the span ends.
 *
 * A call that was cut stays on the stack, for its exit to match. What it does from then on depends on the
 * replay: in parts, it goes on behind the cut (see replay_spans.c); else it is a ghost, and its callees are
 * those of the call below.
 *
 * The calls that contain all of a span keep their positions on the stack from its begin to its end, in both
 * passes: so a plan names the innermost of them by its position. */
#ifndef KPTI_CORE_RECORDING_REPLAY_SPAN_CLAMPS_H
#define KPTI_CORE_RECORDING_REPLAY_SPAN_CLAMPS_H

#include "core/recording/replay/call_stack.h"

typedef struct kpti_span {
    uint64_t index;    /* in the order of begins */
    uint64_t first_id; /* calls from this one on began within it */
    uint32_t number;   /* the host's */
    uint32_t spare;
} kpti_span;

typedef struct kpti_cuts {
    const kpti_env *env;
    uint64_t
        *lasting; /* by span: the position of the innermost call that contains all of it; 0: none */
    uint64_t count;
    uint64_t room;
    kpti_span *open;
    uint64_t open_count;
    uint64_t open_room;
} kpti_cuts;

/* Zeroes are fine. */
void kpti_cuts_free(kpti_cuts *cuts);

/* The first pass. A span begins, while the next call's id is NEXT_ID: 0 when there is no memory. */
int kpti_cuts_plan(kpti_cuts *cuts, uint32_t number, uint64_t next_id);
/* The innermost that has this number ends; one that is not open is none of ours. */
void kpti_cuts_plan_end(kpti_cuts *cuts, uint32_t number, const kpti_call_stack *stack);
/* All that are open end, with the run or in a gap. */
void kpti_cuts_plan_end_all(kpti_cuts *cuts, const kpti_call_stack *stack);

/* The second pass. Span INDEX begins now: *FLOOR is the innermost call on the stack that it lets be. 0 when
 * there is no memory. */
int kpti_cuts_begin(kpti_cuts *cuts, uint64_t index, uint32_t number, const kpti_call_stack *stack,
                    kpti_call_record **floor);
/* The innermost span that has this number ends, and its floor is the answer; NULL: none of ours does. */
kpti_call_record *kpti_cuts_end(kpti_cuts *cuts, uint32_t number, const kpti_call_stack *stack);
/* All that are open end, and cut nothing. */
void kpti_cuts_end_all(kpti_cuts *cuts);

#endif
