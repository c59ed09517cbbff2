#include "python_tracer/tracer.h"

#include "core/base/host_heap.h"
#include "core/base/platform.h"
#include "core/callstacks/function_table.h"
#include "core/recording/delivery/deliver.h"
#include "core/recording/host_clock.h"
#include "python_tracer/chunks/chunk_freeze.h"
#include "python_tracer/chunks/event_stream.h"
#include "python_tracer/chunks/stream_owner.h"
#include "python_tracer/frames/function_naming.h"
#include "python_tracer/frames/open_frames.h"
#include "python_tracer/hooks/asyncio_tasks.h"
#include "python_tracer/hooks/gc_events.h"
#include "python_tracer/hooks/host_marks.h"
#include "python_tracer/hooks/host_operators.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/interpreter/installation.h"
#include "python_tracer/recording_copy.h"
#include "python_tracer/state/code_filter.h"
#include "python_tracer/state/overhead_guard.h"
#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/thread_state.h"
#include "python_tracer/state/tracer_state.h"
#include "python_tracer/state/tracing_lock.h"
#include "python_tracer/tracer_stats.h"
#include "python_tracer/tracing_control.h"

/* The minimum time between two clock points sent to a chunk sink. */
enum { POINTS_APART_NS = 100 * 1000 * 1000 };

static void free_tracer(kpti_tracer *tracer)
{
    const kpti_env *env = tracer->env;
    kpti_filters_free(env, &tracer->filters);
    kpti_guard_free(env, &tracer->guard);
    kpti_free(env, tracer->watches, tracer->watch_count * sizeof(kpti_watch));
    kpti_free(env, tracer->runs, tracer->run_capacity * sizeof(kpti_run));
    kpti_free(env, tracer, sizeof *tracer);
}

/* Reserves capacity for one more run. Returns 0 if there is no memory. */
static int reserve_run(kpti_tracer *tracer)
{
    return kpti_host_array_reserve(tracer->env, &tracer->runs, &tracer->run_capacity,
                                   tracer->run_count + 1, sizeof *tracer->runs);
}

/* Frees everything that was recorded. Streams that have an owner thread stay until that thread frees them. */
static void let_go(kpti_tracer *tracer)
{
    kpti_tracing_lock();
    kpti_cross_thread_ends_free(tracer->env, &tracer->cross_thread_ends);
    while (tracer->streams) {
        kpti_stream *stream = tracer->streams;
        tracer->streams = stream->sibling;
        kpti_stream_empty_locked(stream);
        stream->tracer = NULL;
        if (!stream->thread) kpti_stream_free(stream); /* else its thread frees it later */
    }
    tracer->stream_count = tracer->orphans = 0;
    tracer->left = tracer->done = NULL;
    memset(&tracer->freed, 0, sizeof tracer->freed);
    kpti_tracing_unlock();
}

/* Resets the state of the sink, to which nothing has been sent yet. */
static void forget_given(kpti_tracer *tracer)
{
    const uint64_t apart = tracer->given.point_apart;
    memset(&tracer->given, 0, sizeof tracer->given);
    tracer->given.point_apart = apart;
}

/* Begins a run. Acquires the GIL for it. */
static kpt_status begin_run(kpti_tracer *tracer, kpti_error *error)
{
    kpt_status status;
    PyGILState_STATE gil;
    if (kpti_python_is_ending())
        return kpti_fail(error, KPT_E_STATE, "Python is being finalised, or has been finalised");
    if (kpti_in_sub_interpreter())
        return kpti_fail(
            error, KPT_E_UNSUPPORTED,
            "a sub-interpreter can't be traced: start the tracer from the main interpreter");
    if (tracer->forked) { /* the chunks are the parent's */
        let_go(tracer);
        tracer->run_count = 0;
        tracer->forked = 0;
        forget_given(tracer); /* was sent to the parent's sink */
    }
    if (!reserve_run(tracer)) return kpti_fail(error, KPT_E_MEMORY, "no memory for another run");
    gil = PyGILState_Ensure();
    if (++tracer->run_count == 1) kpti_tracer_calibrate(tracer, &tracer->clock_start);
    status = kpti_tracing_start(tracer, error); /* a failed run is a run without calls */
    PyGILState_Release(gil);
    return status;
}

/* Copies the watches. The host holds the GIL for its code objects; a free-threaded Python has no GIL, so
 * the function attaches a thread state. */
static kpt_status copy_watches(kpti_tracer *tracer, const kpt_tracer_args *args)
{
    PyGILState_STATE gil;
    if (!args->watch_count) return KPT_OK;
    if (kpti_python_is_ending() || kpti_in_sub_interpreter()) return KPT_OK; /* begin_run refuses */
    tracer->watches = kpti_alloc(tracer->env, args->watch_count * sizeof(kpti_watch));
    if (!tracer->watches) return KPT_E_MEMORY;
    tracer->watch_count = args->watch_count;
    gil = PyGILState_Ensure();
    kpti_installation_enter();
    kpti_installation_prepare();
    for (uint32_t i = 0; i < args->watch_count; i++) {
        kpt_watch theirs;
        memcpy(&theirs, (const char *)args->watches + (size_t)i * args->watch_stride,
               sizeof theirs);
        tracer->watches[i].watch = theirs.watch;
        tracer->watches[i].mark = theirs.code ? kpti_name_set_mark(theirs.code) : 0;
    }
    kpti_installation_leave();
    PyGILState_Release(gil);
    return KPT_OK;
}

static kpt_status make(const kpti_env *env, const kpt_tracer_args *args, void **self,
                       kpti_error *error)
{
    kpti_tracer *tracer = kpti_alloc(env, sizeof *tracer);
    kpt_status status;
    if (!tracer) return kpti_fail(error, KPT_E_MEMORY, "no memory for a tracer");
    tracer->env = env;
    tracer->args = *args;
    tracer->walks_before = kpti_open_frames_walks();
    if (args->chunk_sink) tracer->chunk_sink = *args->chunk_sink;
    tracer->given.point_apart = args->chunk_sink ? kpti_clock_ticks_in(POINTS_APART_NS) : 0;
    if (args->ring_ns) tracer->ring_ticks = kpti_clock_ticks_in(args->ring_ns) + 1;
    if (args->flags & KPT_TRACE_THIS_THREAD) tracer->only_tid = kpti_os_tid();
    if (args->flags & KPT_TRACE_TASKS && env->host.on_task) tracer->task_key = kpti_tasks_new_key();
    status = kpti_filters_copy(env, args, &tracer->filters);
    if (status == KPT_OK) status = copy_watches(tracer, args);
    if (status != KPT_OK)
        (void)kpti_fail(error, status, "no memory for filters and watches");
    else
        status = begin_run(tracer, error);
    if (status == KPT_OK) {
        *self = tracer;
    } else {
        let_go(tracer);
        free_tracer(tracer);
    }
    return status;
}

static kpt_status stop(void *self, kpti_error *error)
{
    kpti_tracer *tracer = self;
    (void)error;
    kpti_tracing_stop(tracer);
    kpti_tracer_calibrate(tracer, &tracer->clock_stop);
    kpti_recording_finish(tracer);
    if (tracer->guard.off_count) kpti_guard_report(tracer->env, &tracer->guard);
    return KPT_OK;
}

static kpt_status restart(void *self, kpti_error *error)
{
    return begin_run(self, error);
}

static kpt_status register_gc_callback(void *self, kpti_error *error)
{
    kpti_tracer *tracer = self;
    PyGILState_STATE gil;
    atomic_store_explicit(&tracer->wants_gc, 1, memory_order_relaxed);
    if (!tracer->bit || kpti_python_is_ending()) return KPT_OK; /* the next restart installs it */
    if (kpti_in_sub_interpreter())
        return kpti_fail(error, KPT_E_UNSUPPORTED,
                         "register_gc_callback can't be called from a sub-interpreter: call it "
                         "from the main interpreter");
    gil = PyGILState_Ensure();
    kpti_installation_enter();
    kpti_gc_install();
    kpti_installation_leave();
    PyGILState_Release(gil);
    return KPT_OK;
}

/* Makes replay's tracks of the streams. */
static kpti_track *make_tracks(kpti_tracer *tracer, uint32_t *count)
{
    kpti_track *tracks;
    uint32_t i = 0;
    *count = 0;
    for (kpti_stream *s = tracer->streams; s; s = s->sibling)
        (*count)++;
    if (tracer->forked) *count = 0;
    tracks = kpti_alloc(tracer->env, (*count + 1) * sizeof *tracks);
    if (!tracks) return NULL;
    for (kpti_stream *s = tracer->streams; s && i < *count; s = s->sibling, i++)
        tracks[*count - 1 - i] = (kpti_track){
            s->first, s->os_tid, s->host_value, kpt_str_of(s->name), s->thread_flags, s->spans};
    return tracks;
}

/* Copies the runs for replay. A run that is still active ends now. */
static kpti_run *copy_runs(const kpti_tracer *tracer)
{
    kpti_run *runs = kpti_alloc(tracer->env, tracer->run_count * sizeof *runs);
    if (!runs) return NULL;
    memcpy(runs, tracer->runs, tracer->run_count * sizeof *runs);
    if (tracer->bit) runs[tracer->run_count - 1].stop_ticks = kpti_tracer_ticks(tracer);
    return runs;
}

static kpt_status deliver_tracks(kpti_tracer *tracer, const kpti_track *tracks, uint32_t count,
                                 const kpti_cross_thread_ends *cross_thread_ends,
                                 const kpt_delivery *delivery, kpti_error *error)
{
    kpti_run *runs = copy_runs(tracer);
    kpti_recording recording = {.tracks = tracks,
                                .track_count = count,
                                .runs = runs,
                                .run_count = tracer->run_count,
                                .function_count = kpti_function_count(),
                                .describe = kpti_function_describe,
                                .min_duration_ns = tracer->args.min_duration_ns,
                                .cross_thread_ends = cross_thread_ends->ends,
                                .remote_end_count = cross_thread_ends->count};
    kpti_clock clock;
    kpti_host_ticks host_ticks;
    kpt_delivery theirs = *delivery;
    kpti_delivery_job job = {tracer->env, &recording, &theirs, kpti_clock_convert, &clock, 0};
    kpt_status status;
    if (!runs) return kpti_fail(error, KPT_E_MEMORY, "no memory to deliver");
    if (tracer->bit) kpti_tracer_calibrate(tracer, &tracer->clock_stop);
    kpti_clock_between(&tracer->clock_start, &tracer->clock_stop, &clock);
    kpti_host_ticks_between(&host_ticks, tracer->env->host.tick_source, &clock,
                            &tracer->clock_start, &theirs);
    status = kpti_deliver(&job, error);
    tracer->repairs = job.repairs;
    kpti_free(tracer->env, runs, tracer->run_count * sizeof *runs);
    return status;
}

static kpt_status deliver(void *self, const kpt_delivery *delivery, kpti_error *error)
{
    kpti_tracer *tracer = self;
    kpt_status status = KPT_E_MEMORY;
    kpti_track *tracks;
    kpti_cross_thread_ends cross_thread_ends;
    uint32_t count;
    int copied;
    kpti_chunks_freeze(tracer);
    kpti_tracing_lock();
    tracks = make_tracks(tracer, &count);
    copied =
        kpti_cross_thread_ends_copy(tracer->env, &tracer->cross_thread_ends, &cross_thread_ends);
    kpti_tracing_unlock();
    if (tracks && copied)
        status = deliver_tracks(tracer, tracks, count, &cross_thread_ends, delivery, error);
    else
        (void)kpti_fail(error, status, "no memory to deliver");
    kpti_cross_thread_ends_free(tracer->env, &cross_thread_ends);
    if (tracks) kpti_free(tracer->env, tracks, (count + 1) * sizeof *tracks);
    kpti_chunks_thaw(tracer);
    return status;
}

static void get_stats(void *self, kpt_stats *out)
{
    kpti_tracer_stats(self, out);
}

static void mark(void *self, uint32_t what, uint64_t number)
{
    kpti_mark(self, what, number);
}

static uint32_t name_operator(void *self, kpt_str name, uint32_t scope)
{
    (void)self; /* the table of functions is the process's */
    return kpti_operator_name(name, scope);
}

static uint64_t begin_operator(void *self, kpt_handle handle, const kpt_operator *op)
{
    return kpti_operator_begin(self, handle, op);
}

static void end_operator(void *self, uint64_t token)
{
    kpti_operator_end(self, token);
}

static kpt_status get_chunks(void *self, const kpt_chunk_sink *sink, kpti_error *error)
{
    kpti_tracer *tracer = self;
    if (sink) return kpti_recording_copy(tracer, sink, error);
    if (!tracer->chunk_sink.sealed)
        return kpti_fail(error, KPT_E_INVALID,
                         "get_chunks: sink is NULL, and the tracer was made without a chunk sink");
    kpti_recording_flush(tracer);
    return KPT_OK;
}

/* Runs in the child of a fork. The other threads no longer exist and will never leave their callbacks. The
 * greenlets of this thread continue. */
static void forked(void *self)
{
    kpti_tracer *tracer = self;
    tracer->forked = 1;
    tracer->readers = 0;
    kpti_tracing_forget_locked(tracer);
    for (kpti_stream *s = tracer->streams; s; s = s->sibling) {
        if (!s->thread || kpti_thread_real(s->thread) == kpti_thread_real(kpti_thread_self))
            continue;
        kpti_stream_abandon_locked(s);
        s->thread_flags |= KPT_THREAD_ENDED;
    }
}

static void destroy(void *self)
{
    kpti_tracer *tracer = self;
    kpti_tracing_stop(tracer); /* even if Python's end has stopped it: a thread may be inside */
    let_go(tracer);
    free_tracer(tracer);
}

const kpti_tracer_impl kpti_python_tracer = {
    .make = make,
    .stop = stop,
    .restart = restart,
    .register_gc_callback = register_gc_callback,
    .deliver = deliver,
    .get_stats = get_stats,
    .mark = mark,
    .get_chunks = get_chunks,
    .name_operator = name_operator,
    .begin_operator = begin_operator,
    .end_operator = end_operator,
    .get_direct_ops = kpti_operator_direct_ops,
    .forked = forked,
    .destroy = destroy,
};
