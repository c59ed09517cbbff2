#include "python_tracer/tracing_control.h"

#include <pthread.h>

#include "core/base/assert.h"
#include "core/base/platform.h"
#include "python_tracer/chunks/chunk_sink.h"
#include "python_tracer/chunks/event_stream.h"
#include "python_tracer/hooks/gc_events.h"
#include "python_tracer/hooks/hooks.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/interpreter/installation.h"
#include "python_tracer/state/active_tracers.h"
#include "python_tracer/state/fork_watch.h"
#include "python_tracer/state/host_callbacks.h"
#include "python_tracer/state/quiesce.h"
#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/tracing_lock.h"
#include "python_tracer/threads/hook_removal.h"
#include "python_tracer/threads/idle_threads.h"
#include "python_tracer/threads/thread_list.h"

void kpti_tracing_forget_locked(kpti_tracer *tracer)
{
    kpti_assert(kpti_tracing_lock_is_mine());
    kpti_tracers_remove_locked(tracer);
    for (kpti_stream *s = tracer->streams; s; s = s->sibling)
        kpti_stream_close(s);
    tracer->bit = 0;
    kpti_invalidate_caches();
}

/* Stops all active tracers. In the child of a fork all recorded events are the parent's, and the host's
 * clock is not read, since it may belong to another thread. */
static void forget_all_locked(int in_child)
{
    for (int i = 0; i < KPTI_MAX_TRACERS; i++) {
        kpti_tracer *tracer = kpti_tracers_at_locked(i);
        if (!tracer) continue;
        if (!in_child) tracer->runs[tracer->run_count - 1].stop_ticks = kpti_tracer_ticks(tracer);
        kpti_tracing_forget_locked(tracer);
    }
}

void kpti_tracing_forked_locked(void)
{
    /* A tracer that another thread was making or destroying has no handle, so the plugin has not notified
     * it. */
    forget_all_locked(1);
    kpti_thread_list_forked_locked();
    kpti_tracers_forked_locked();
    kpti_host_calls_forked_locked();
    kpti_installation_forked();
    kpti_invalidate_caches();
}

static void prepare_once(void)
{
    kpti_fork_watch();
    (void)kpti_membarrier_register();
}

static kpt_status start_inside(kpti_tracer *tracer, kpti_error *error)
{
    kpt_status status;
    int joined;
    /* Parts that run Python come first, so that they are not recorded. The hooks are installed last, since
     * a callback that finds no active tracer removes them. */
    kpti_installation_prepare();
    kpti_remove_hooks_if_idle(1); /* a stop without the GIL left hooks, maybe with another tool */
    if (tracer->wants_gc) kpti_gc_install();
    kpti_tracing_lock();
    kpti_assert(tracer->run_count);
    joined = kpti_tracers_add_locked(tracer);
    tracer->all_known_ticks = 0;
    tracer->runs[tracer->run_count - 1].start_ticks = kpti_tracer_ticks(tracer);
    kpti_invalidate_caches();
    kpti_tracing_unlock();
    if (!joined)
        return kpti_fail(error, KPT_E_LIMIT,
                         "%d tracers are recording already, which is the maximum: stop one first",
                         KPTI_MAX_TRACERS);
    kpti_idle_threads_record(tracer);
    status = kpti_hooks_install(tracer->args.tool_id, tracer->env->host.name, error);
    if (status != KPT_OK) {
        kpti_tracing_stop(tracer); /* with another tracer's hooks, threads have begun to record */
    }
    return status;
}

static void add_starting(int count)
{
    kpti_tracing_lock();
    kpti_tracers_add_starting_locked(count);
    kpti_tracing_unlock();
}

kpt_status kpti_tracing_start(kpti_tracer *tracer, kpti_error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    kpt_status status;
    (void)pthread_once(&once, prepare_once);
    kpti_installation_enter();
    add_starting(1);
    status = start_inside(tracer, error);
    add_starting(-1);
    if (status != KPT_OK) kpti_remove_hooks_if_idle(0);
    kpti_installation_leave();
    return status;
}

void kpti_tracing_stop(kpti_tracer *tracer)
{
    int last;
    kpti_tracing_lock();
    if (tracer->bit) tracer->runs[tracer->run_count - 1].stop_ticks = kpti_tracer_ticks(tracer);
    kpti_tracing_forget_locked(tracer);
    last = kpti_tracers_are_idle_locked(0);
    kpti_tracing_unlock();
    kpti_host_calls_wait(tracer);
    kpti_wait_for_callbacks(tracer);
    kpti_tracing_lock();
    for (kpti_stream *s = tracer->streams; s; s = s->sibling)
        kpti_stream_seal_locked(s);
    kpti_tracing_unlock();
    /* No stream is added or freed while the tracer is stopped and its host waits for this call, since a stopped ring drops
     * nothing. */
    if (!tracer->forked) kpti_sink_describe(tracer, tracer->streams);
    for (kpti_stream *s = tracer->forked ? NULL : tracer->streams; s; s = s->sibling)
        kpti_sink_push(s, tracer->runs[tracer->run_count - 1].stop_ticks);
    /* Without the GIL, the next callback removes the hooks. */
    if (last && kpti_may_touch_python()) kpti_remove_hooks_if_idle(0);
}

/* The host later stops again each tracer that the interpreter's end has stopped. That stop waits for
 * threads inside callbacks and seals the chunks. Here it suffices that no further events are recorded. */
void kpti_tracing_end(void)
{
    kpti_tracing_lock();
    forget_all_locked(0);
    kpti_tracing_unlock();
}

void kpti_tracing_exit(void)
{
    kpti_tracing_end();
    kpti_remove_hooks_if_idle(0);
}
