/* tracer_state.h: the fields of a tracer: its options, its streams, its runs. The plugin makes one control call
 * at a time; traced threads come in beside it, through their streams. The tracing lock guards its list of
 * streams, their chunks and its counters. */
#ifndef KPTI_PYTHON_TRACER_STATE_TRACER_STATE_H
#define KPTI_PYTHON_TRACER_STATE_TRACER_STATE_H

#include "core/base/platform.h"
#include "core/recording/clock.h"
#include "core/recording/replay/cross_thread_span_ends.h"
#include "python_tracer/state/code_filter.h"
#include "python_tracer/state/overhead_guard.h"
#include "python_tracer/state/stream_state.h"

/* A kpt_watch whose code may die. */
typedef struct kpti_watch {
    uint64_t watch;
    uint32_t mark; /* kpti_name_mark of the code; 0: it is not watched */
} kpti_watch;

typedef struct kpti_tracer {
    const kpti_env *env;
    kpt_tracer_args args;      /* arrays and chunk_sink are replaced by the fields below */
    kpt_chunk_sink chunk_sink; /* sealed is NULL without one */
    kpti_filters filters;
    kpti_guard guard; /* with args.overhead_permille; under the tracing lock */
    kpti_watch *watches;
    uint32_t watch_count;
    uint64_t watched_calls; /* so far; the last call id */
    uint32_t bit;           /* in masks; 0 while it does not record */
    uint64_t only_tid;      /* the one thread that is recorded; 0: all */
    _Atomic int wants_gc;
    _Atomic int wants_callers; /* the lines that calls are made from */
    uint32_t task_key; /* no other tracer's, in the table of tasks; 0: tasks are not wanted */
    int forked;        /* in the child of a fork: what is held is the parent's, and not delivered */

    kpti_stream *streams;
    kpti_stream *left; /* those whose threads have ended, in that order, while they have chunks */
    kpti_stream **left_end;
    uint32_t stream_count;
    uint32_t quiesce_rounds; /* so far */
    uint32_t orphans;        /* of threads that have had no event yet */
    kpti_far_ends far_ends;
    uint32_t readers; /* snapshots in progress: no chunk may go or be joined */
    uint64_t bytes_held;
    uint64_t ring_ticks; /* how far back a ring by time reaches; 0: none */
    /* What the sink has: functions below names, runs below runs, and when it got a clock's point. */
    struct {
        uint64_t events;
        uint64_t point_ticks;
        uint64_t point_apart;
        uint32_t names;
        uint32_t runs;
    } given;
    uint64_t chunks_sealed;
    uint64_t chunks_refused;
    uint64_t repairs;      /* of the last delivery */
    uint64_t walks_before; /* there were, when it was made */

    kpti_run *runs;
    uint32_t run_count;
    uint64_t run_room;
    kpti_clock_point clock_start; /* of the first run */
    kpti_clock_point clock_stop;  /* of the last */
} kpti_tracer;

/* Whether the host reads the clock that events are stamped with (KPT_TICKS_HOST). */
static inline int kpti_tracer_has_clock(const kpti_tracer *tracer)
{
    return tracer->env->host.tick_source == KPT_TICKS_HOST;
}

/* Now, on the clock that the tracer's events are stamped with. */
static inline uint64_t kpti_tracer_ticks(const kpti_tracer *tracer)
{
    const kpt_host *host = &tracer->env->host;
    return kpti_tracer_has_clock(tracer) ? host->now_ticks(host->ctx) : kpti_ticks();
}

/* Takes a point of that clock. */
void kpti_tracer_calibrate(const kpti_tracer *tracer, kpti_clock_point *out);

#endif
