/* tracer_state.h: the fields of a tracer: its options, its streams, its runs. The plugin makes one control
 * call at a time. Traced threads record at the same time, through their streams. The tracing lock guards
 * the list of streams, their chunks and the counters. */
#ifndef KPTI_PYTHON_TRACER_STATE_TRACER_STATE_H
#define KPTI_PYTHON_TRACER_STATE_TRACER_STATE_H

#include "core/base/platform.h"
#include "core/recording/clock.h"
#include "core/recording/replay/cross_thread_span_ends.h"
#include "python_tracer/state/code_filter.h"
#include "python_tracer/state/overhead_guard.h"
#include "python_tracer/state/stream_state.h"

/* A kpt_watch whose code object may die. */
typedef struct kpti_watch {
    uint64_t watch;
    uint32_t mark; /* kpti_name_mark of the code; 0: not watched */
} kpti_watch;

typedef struct kpti_tracer {
    const kpti_env *env;
    kpt_tracer_args args;      /* arrays and chunk_sink are replaced by the fields below */
    kpt_chunk_sink chunk_sink; /* sealed is NULL if there is no sink */
    kpti_filters filters;
    kpti_guard guard; /* with args.overhead_permille; under the tracing lock */
    kpti_watch *watches;
    uint32_t watch_count;
    uint64_t watched_calls; /* number so far; also the last call id */
    uint32_t bit;           /* its bit in masks; 0 while it does not record */
    /* When all threads that were inside Python had a stream, after a start; 0: some may have none. */
    uint64_t all_known_ticks;
    uint64_t only_tid; /* the only thread that is recorded; 0: all threads */
    _Atomic int wants_gc;
    _Atomic int needs_caller_lines; /* calls are recorded with the line that they are made from */
    uint32_t task_key;       /* its unique key in the task table; 0: tasks are not recorded */
    _Atomic uint32_t ranges; /* ranges of the host so far */
    int forked; /* in the child of a fork: the chunks are the parent's and are not delivered */

    kpti_stream *streams; /* the newest first */
    kpti_stream *left;    /* streams of ended threads that may have chunks (ended_streams.h) */
    kpti_stream **left_end;
    kpti_stream *done; /* those without, of which the sink has to have the threads */
    struct {
        uint64_t threads;
        uint64_t events_dropped;
    } freed;                 /* counters of streams that were freed */
    uint32_t stream_count;   /* made so far */
    uint32_t quiesce_rounds; /* so far */
    uint32_t orphans;        /* streams of threads that have had no event yet */
    kpti_cross_thread_ends cross_thread_ends;
    uint32_t readers; /* snapshots in progress; while not 0 only chunks in `later` are freed */
    uint64_t bytes_held;
    uint64_t ring_ticks; /* time span of a ring by time; 0: no such ring */
    /* What the sink has received: functions below names, runs below runs, and the time of the last clock
     * point. */
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
    uint64_t walks_before; /* kpti_open_frames_walks when the tracer was made */

    kpti_run *runs;
    uint32_t run_count;
    uint64_t run_capacity;
    kpti_clock_point clock_start; /* of the first run */
    kpti_clock_point clock_stop;  /* of the last */
} kpti_tracer;

/* Whether events are stamped with the host's clock (KPT_TICKS_HOST). */
static inline int kpti_tracer_has_clock(const kpti_tracer *tracer)
{
    return tracer->env->host.tick_source == KPT_TICKS_HOST;
}

/* Returns the current time on the clock that stamps the tracer's events. */
static inline uint64_t kpti_tracer_ticks(const kpti_tracer *tracer)
{
    const kpt_host *host = &tracer->env->host;
    return kpti_tracer_has_clock(tracer) ? host->now_ticks(host->ctx) : kpti_ticks();
}

/* Measures a calibration point of that clock. */
void kpti_tracer_calibrate(const kpti_tracer *tracer, kpti_clock_point *out);

#endif
