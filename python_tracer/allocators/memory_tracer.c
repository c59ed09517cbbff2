#include "python_tracer/allocators/memory_tracer.h"

#include "core/callstacks/stack_trie.h"
#include "core/memory_log/allocation_log.h"
#include "core/memory_log/export.h"
#include "core/memory_log/log_chunks.h"
#include "core/memory_log/log_stream.h"
#include "core/memory_log/sampled_blocks.h"
#include "core/recording/clock.h"
#include "python_tracer/allocators/allocator_hooks.h"
#include "python_tracer/allocators/host_blocks.h"
#include "python_tracer/allocators/numpy_hooks.h"
#include "python_tracer/capture/stack_capture.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/state/fork_watch.h"

typedef struct memory_tracer {
    const kpti_env *env;
    kpt_memory_args args;
    kpti_memory_log *log;
    kpti_clock_point started;
    kpti_clock_point stopped;
    int running;
    int has_run;
    int is_child; /* child of a fork: the log still holds the parent's records */
} memory_tracer;

static kpt_status make(const kpti_env *env, const kpt_memory_args *args, void **self,
                       kpti_error *error)
{
    memory_tracer *t = kpti_alloc(env, sizeof *t);
    if (!t) return kpti_fail(error, KPT_E_MEMORY, "no memory for a memory tracer");
    t->env = env;
    t->args = *args;
    t->log = kpti_memory_log_make(
        (kpti_memory_wish){args->max_entries, args->sample_bytes, args->max_frames});
    if (!t->log) {
        kpti_free(env, t, sizeof *t);
        return kpti_fail(error, KPT_E_MEMORY, "no memory for a memory tracer");
    }
    kpti_stacks_pin();
    kpti_fork_watch();
    *self = t;
    return KPT_OK;
}

/* Clears the log of the parent of a fork; its records don't belong to the child. */
static void forget_parent(memory_tracer *t)
{
    if (!t->is_child) return;
    kpti_log_stream_forked(kpti_memory_log_stream(t->log));
    kpti_memory_log_clear(t->log);
    t->is_child = 0;
}

/* Installs the hooks. The caller holds the GIL. If they are installed, numpy may have been imported since. */
static kpt_status start_attached(memory_tracer *t, kpti_error *error)
{
    if (t->running) {
        kpti_numpy_hooks_install();
        return KPT_OK;
    }
    forget_parent(t);
    kpti_capture_prepare();
    if (!kpti_memory_log_begin(t->log))
        return kpti_fail(error, KPT_E_BUSY, "another memory tracer is recording: stop it first");
    if (!t->has_run) kpti_clock_calibrate(&t->started);
    if (kpti_memory_log_stream(t->log)) kpti_log_stream_resume(kpti_memory_log_stream(t->log));
    kpti_memory_hooks_install(t->args.sample_bytes != 0);
    t->running = t->has_run = 1;
    return KPT_OK;
}

static kpt_status start(void *self, kpti_error *error)
{
    kpt_status status;
    PyGILState_STATE gil;
    if (kpti_python_is_ending()) return kpti_fail(error, KPT_E_STATE, "Python is being finalised");
    if (kpti_in_sub_interpreter())
        return kpti_fail(error, KPT_E_STATE,
                         "a memory tracer can't be started from a sub-interpreter: start it from "
                         "the main interpreter, it records the memory of all interpreters");
    gil = PyGILState_Ensure();
    status = start_attached(self, error);
    PyGILState_Release(gil);
    return status;
}

/* Ends recording. If the caller does not hold the GIL, the hooks stay and pass every call on. */
static void end(memory_tracer *t)
{
    kpti_memory_hooks_end(t->log);
    kpti_clock_calibrate(&t->stopped);
    kpti_samples_clear();
    t->running = 0;
    if (kpti_may_touch_python()) kpti_memory_hooks_remove();
}

static kpt_status flush(memory_tracer *t, kpti_error *error)
{
    kpti_log_stream *stream = kpti_memory_log_stream(t->log);
    const kpt_status status = stream ? kpti_log_stream_flush(stream, !t->running) : KPT_OK;
    if (status == KPT_OK) return status;
    return kpti_fail(error, status, "what was recorded could not be delivered: %s",
                     kpt_status_name(status));
}

/* A delivery that fails is known to the host, whose sink it is. */
static kpt_status stop(void *self, kpti_error *error)
{
    memory_tracer *t = self;
    kpti_error none = {""};
    (void)error;
    end(t);
    (void)flush(t, &none);
    return KPT_OK;
}

static kpt_status stream(void *self, kpt_memory_sink_fn sink, void *sink_ctx, kpti_error *error)
{
    memory_tracer *t = self;
    kpt_status status;
    forget_parent(t);
    if (kpti_memory_log_stream(t->log)) return flush(t, error);
    if (t->args.max_entries)
        return kpti_fail(error, KPT_E_UNSUPPORTED,
                         "stream: a recording of the last max_entries is kept in memory");
    if (t->has_run)
        return kpti_fail(error, KPT_E_STATE, "stream: the recording has begun without a sink");
    status = kpti_log_stream_begin(t->log, sink, sink_ctx);
    if (status == KPT_OK) return KPT_OK;
    return kpti_fail(error, status, "stream: no memory, or no thread");
}

static kpt_status export_memory_history(void *self, const char *path, kpti_error *error)
{
    memory_tracer *t = self;
    kpti_memory_source source = {t->env, t->log, {t->started, t->stopped}};
    forget_parent(t);
    if (!t->has_run) kpti_clock_calibrate(&source.points[0]);
    if (t->running || !t->has_run) kpti_clock_calibrate(&source.points[1]);
    return kpti_memory_export(&source, path, error);
}

static void report(void *self, const kpt_memory_report *report)
{
    kpti_memory_report(((memory_tracer *)self)->log, report);
}

static void forked(void *self)
{
    memory_tracer *t = self;
    t->running = t->has_run = 0;
    t->is_child = 1;
}

static void destroy(void *self)
{
    memory_tracer *t = self;
    if (t->running) end(t); /* the hooks may otherwise belong to another tracer */
    forget_parent(t);
    kpti_log_stream_end(kpti_memory_log_stream(t->log));
    kpti_memory_log_free(t->log);
    kpti_stacks_unpin();
    kpti_free(t->env, t, sizeof *t);
}

const kpti_memory_impl kpti_python_memory = {
    .make = make,
    .start = start,
    .stop = stop,
    .export_memory_history = export_memory_history,
    .report = report,
    .stream = stream,
    .forked = forked,
    .destroy = destroy,
};
