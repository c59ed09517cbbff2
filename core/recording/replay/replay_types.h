/* replay_types.h: the types that the interface of a replay (replay.h) and its state (replay_state.h) share. */
#ifndef KPTI_CORE_RECORDING_REPLAY_REPLAY_TYPES_H
#define KPTI_CORE_RECORDING_REPLAY_REPLAY_TYPES_H

#include "abi/impl/kpti_impl.h"
#include "core/recording/recording.h"

/* The name index of garbage collections: the first index that is not a function's id. */
static inline uint32_t kpti_gc_function(const kpti_recording *recording)
{
    return recording->function_count ? recording->function_count : 1;
}

/* The name indices after it: of points that the host marked, and of begins and ends of the host's ranges. */
static inline uint32_t kpti_point_function(const kpti_recording *recording)
{
    return kpti_gc_function(recording) + 1;
}

static inline uint32_t kpti_range_begin_function(const kpti_recording *recording)
{
    return kpti_gc_function(recording) + 2;
}

static inline uint32_t kpti_range_end_function(const kpti_recording *recording)
{
    return kpti_gc_function(recording) + 3;
}

/* Converts ticks to nanoseconds. */
typedef struct kpti_timebase {
    kpt_convert_fn convert; /* NULL: a tick is a nanosecond. Called with blocks of ticks in
                               non-decreasing order; replay repairs results that decrease */
    void *convert_ctx;
    int64_t end_ns; /* end of calls that are open when the last run ends; 0: the end of that run */
} kpti_timebase;

/* Which activities a replay writes. */
enum { KPTI_BEGINS = 1, KPTI_ENDS = 2, KPTI_POINTS = 4, KPTI_RANGES = 8 };

typedef enum kpti_filled {
    KPTI_FILLED_ALL = 0,  /* no more activities */
    KPTI_FILLED_MORE = 1, /* there may be more */
    KPTI_FILLED_NO_MEMORY = 2
} kpti_filled;

typedef struct kpti_replay kpti_replay;

/* What happens to a call that is cut at a span of the host. */
typedef enum kpti_parts {
    KPTI_PARTS_NONE = 0,    /* it ends at the cut */
    KPTI_PARTS_SHARED = 1,  /* it continues after the cut, flagged CONTINUED, with the same id */
    KPTI_PARTS_NUMBERED = 2 /* the same, but each part has an id of its own, in pre-order */
} kpti_parts;

/* Returns the index of a name for the inputs that COUNT TEXT events from EVENTS on spell, or 0 if there is no memory. */
typedef uint32_t (*kpti_inputs_fn)(void *ctx, const kpti_event *events, uint32_t count);

enum {
    KPTI_RANGE_INPUTS_SHIFT = 32
}; /* in value1 at the begin of a range; its scope and flags are below */

/* What a replay does with the host's spans, ranges and operators. */
typedef struct kpti_replay_options {
    kpti_parts parts;
    int has_ranges; /* ranges are reported, and calls that would cross them are cut; else they are skipped */
    /* The line of an operator is what it returns, and the upper half of value1 at the begin of a range. NULL: neither has
     * inputs. */
    kpti_inputs_fn inputs;
    void *inputs_ctx;
} kpti_replay_options;

#endif
