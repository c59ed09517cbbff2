/* recording.h: what a tracer holds, as replay reads it: per thread a list of chunks of events.
 *
 * A recording is made of runs: make begins the first, each restart another. All chunks of a run carry
 * its number. Within a run a thread's chunks are numbered from 0; a gap is what a ring dropped.
 *
 * Invariants:
 *   a chunk's events begin with its OPEN events (and their LINEs), outermost first: the thread's
 *   Python calls that were open there. The first chunk of a run always has them; later ones only where
 *   chunks may be dropped or handed away. They tell nothing new where the chunk before is there.
 *   the low half of the first event continues base_ticks; ticks of a thread never go backwards by more
 *   than the counters of two processors differ. */
#ifndef KPTI_CORE_RECORDING_RECORDING_H
#define KPTI_CORE_RECORDING_RECORDING_H

#include <stddef.h>

#include "abi/kpt_activity.h"
#include "core/recording/event.h"

typedef struct kpti_chunk {
    struct kpti_chunk *next; /* of the same thread, later */
    uint64_t
        base_ticks; /* the whole counter when it was begun; of the host's clock, if it has one */
    uint64_t begun; /* kpti_ticks then; for rings */
    uint64_t dropped_before; /* events lost between the chunk before and this one */
    uint32_t run;
    uint32_t sequence;  /* within the run and thread */
    uint32_t capacity;  /* of events */
    uint32_t count;     /* events that hold */
    uint32_t repeated;  /* the first of them, which tell what was open: OPEN events and theirs */
    kpti_event *events; /* behind the chunk itself, or lent by a loader */
} kpti_chunk;

/* How many of its events, if it is sealed, are in no chunk before: so many are recorded, or lost with it. */
static inline uint32_t kpti_chunk_own_events(const kpti_chunk *chunk)
{
    return chunk->count > chunk->repeated ? chunk->count - chunk->repeated : 0;
}

/* One thread's part of a recording. */
typedef struct kpti_track {
    const kpti_chunk *chunks; /* the first; NULL: none */
    uint64_t os_tid;
    uint64_t host_value;
    kpt_str name;
    uint32_t flags; /* KPT_THREAD_* */
    uint32_t spans; /* not 0: there are spans of the host's among the events */
} kpti_track;

/* A span of the host's has ended on another thread than it began on. */
typedef struct kpti_far_end {
    uint64_t ticks;
    uint32_t number; /* the span's */
    uint32_t spare;
} kpti_far_end;

typedef struct kpti_run {
    uint64_t start_ticks;
    uint64_t stop_ticks; /* when it ended, or now, for a snapshot of a running one */
} kpti_run;

/* What replay knows of a function id. Ids are indices; id 0 is a function that could not be named. */
typedef struct kpti_function_view {
    kpt_str display;
    kpt_str function;
    kpt_str qualname;
    kpt_str file;
    uint32_t first_line;
    uint32_t kind; /* KPT_KIND_PYTHON or KPT_KIND_C */
} kpti_function_view;

/* Fills OUT for ID; 0 if there is no such function. Any thread, no GIL. */
typedef int (*kpti_describe_fn)(void *ctx, uint32_t id, kpti_function_view *out);

typedef struct kpti_recording {
    const kpti_track *tracks;
    uint32_t track_count;
    const kpti_run *runs;
    uint32_t run_count;
    uint32_t function_count; /* ids are below this */
    kpti_describe_fn describe;
    void *describe_ctx;
    uint64_t min_duration_ns;     /* shorter calls are not delivered, nor are their callees */
    const kpti_far_end *far_ends; /* by ticks */
    uint64_t far_end_count;
} kpti_recording;

#endif
