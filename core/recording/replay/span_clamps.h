/* span_clamps.h: decides which calls of a thread the host's spans cut. A call that contains the begin of a span
 * but not its end would cross the span, and is cut where the span begins. This must be known at the begin, so a
 * first pass finds the calls that last, and the second pass cuts the others. A call that contains the end but
 * not the begin is cut where the span ends.
 *
 * A call that was cut stays on the stack, so that its exit matches. In parts, it continues after the cut (see
 * replay_spans.c). Else it becomes a clamped frame, and its callees become callees of the call below it.
 *
 * The calls that contain all of a span keep their positions on the stack from its begin to its end, in both
 * passes. So a plan identifies the innermost of them by its position. */
#ifndef KPTI_CORE_RECORDING_REPLAY_SPAN_CLAMPS_H
#define KPTI_CORE_RECORDING_REPLAY_SPAN_CLAMPS_H

#include "core/base/assert.h"
#include "core/recording/replay/call_stack.h"

typedef struct kpti_span {
    uint64_t index;    /* in the order of begins */
    uint64_t first_id; /* calls with this id or a later one began within the span */
    uint32_t number;   /* the host's number */
    uint32_t is_range; /* it has a name */
} kpti_span;

typedef struct kpti_span_clamps {
    const kpti_env *env;
    uint64_t
        *lasting; /* by span: position of the innermost call that contains all of it; 0: none */
    uint64_t count;
    uint64_t capacity;
    kpti_span *open;
    uint64_t open_count;
    uint64_t open_capacity;
} kpti_span_clamps;

static inline int kpti_span_clamps_are_valid(const kpti_span_clamps *clamps)
{
    return clamps->count <= clamps->capacity && clamps->open_count <= clamps->open_capacity &&
           (!clamps->open_count || clamps->open[clamps->open_count - 1].index < clamps->count);
}

/* A zeroed CLAMPS is valid. */
void kpti_span_clamps_free(kpti_span_clamps *clamps);

/* First pass: a span begins. NEXT_ID is the id that the next call will get. Returns 0 if there is no memory. */
int kpti_span_clamps_scan(kpti_span_clamps *clamps, uint32_t number, uint64_t next_id);
/* The innermost open span with this number ends. Ignored if no such span is open. */
void kpti_span_clamps_scan_end(kpti_span_clamps *clamps, uint32_t number,
                               const kpti_call_stack *stack);
/* All open spans end, with the run or in a gap. */
void kpti_span_clamps_scan_end_all(kpti_span_clamps *clamps, const kpti_call_stack *stack);

/* Second pass: span INDEX begins. *FLOOR is the innermost call on the stack that the span does not cut. Returns
 * 0 if there is no memory. */
int kpti_span_clamps_apply(kpti_span_clamps *clamps, uint64_t index, uint32_t number,
                           uint32_t is_range, const kpti_call_stack *stack,
                           kpti_call_record **floor);
/* The innermost open span with this number ends. Returns its floor, or NULL if no such span is open. *IS_RANGE
 * receives whether it is a range. */
kpti_call_record *kpti_span_clamps_end(kpti_span_clamps *clamps, uint32_t number,
                                       const kpti_call_stack *stack, uint32_t *is_range);
/* Returns the number of the innermost open range and removes it, or returns KPTI_NO_RANGE. */
#define KPTI_NO_RANGE UINT32_MAX
uint32_t kpti_span_clamps_take_range(kpti_span_clamps *clamps);
/* All open spans end, and cut nothing. */
void kpti_span_clamps_end_all(kpti_span_clamps *clamps);

#endif
