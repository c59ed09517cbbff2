#include "python_tracer/threads/tracing_state.h"

#include <pthread.h>
#include <sched.h>

#include "core/base/platform.h"
#include "core/callstacks/function_table.h"
#include "python_tracer/chunks/chunk_budget.h"
#include "python_tracer/chunks/chunk_sink.h"
#include "python_tracer/fork_handlers.h"
#include "python_tracer/hooks/gc_events.h"
#include "python_tracer/hooks/hooks.h"
#include "python_tracer/interpreter_install.h"
#include "python_tracer/threads/active_tracers.h"
#include "python_tracer/threads/host_callbacks.h"
#include "python_tracer/threads/idle_threads.h"
#include "python_tracer/threads/traced_thread.h"
#include "python_tracer/tracer.h"

_Atomic uint64_t kpti_session_epoch = KPTI_ROSTER_STEP; /* no new thread's */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int starting; /* tracers on their way onto the roster */
static kpti_thread *threads;

void kpti_session_lock(void)
{
    pthread_mutex_lock(&lock);
}

void kpti_session_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void kpti_session_bump(void)
{
    atomic_fetch_add(&kpti_session_epoch, KPTI_ROSTER_STEP);
}

/* Whether nobody records; OWN: of those that are starting, how many the caller answers for. */
static int is_idle_locked(int own)
{
    return kpti_roster_is_empty_locked() && starting <= own;
}

int kpti_session_is_idle_locked(void)
{
    return is_idle_locked(0);
}

/* OWN: as above. */
static void remove_if_idle(int own)
{
    int idle;
    kpti_installation_enter();
    kpti_session_lock();
    idle = is_idle_locked(own); /* somebody may have begun since the caller looked */
    kpti_session_unlock();
    if (idle) kpti_installation_remove();
    kpti_installation_leave();
}

void kpti_session_forget_locked(kpti_tracer *tracer)
{
    kpti_roster_remove_locked(tracer);
    for (kpti_stream *s = tracer->streams; s; s = s->sibling)
        kpti_stream_close(s);
    tracer->bit = 0;
    kpti_session_bump();
}

/* Those that record stop now. In the child of a fork, where all that was recorded is the parent's, the host's
 * clock is not read: it may be another thread's. */
static void forget_all_locked(int in_child)
{
    for (int i = 0; i < KPTI_MOST_RECORDING; i++) {
        kpti_tracer *tracer = kpti_roster_at_locked(i);
        if (!tracer) continue;
        if (!in_child) tracer->runs[tracer->run_count - 1].stop_ticks = kpti_tracer_ticks(tracer);
        kpti_session_forget_locked(tracer);
    }
}

void kpti_session_forked_locked(void)
{
    kpti_thread *self = kpti_thread_self;
    /* One that another thread was making or destroying has no handle, and so the plugin has not told it. */
    forget_all_locked(1);
    if (self) {
        self->next = NULL;
        atomic_store_explicit(&self->busy, 0, memory_order_relaxed);
    }
    starting = 0;
    threads = self;
    kpti_host_calls_forked_locked();
    kpti_installation_forked();
    kpti_session_bump();
}

void kpti_session_remove_if_idle(void)
{
    remove_if_idle(0);
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
    /* What runs Python comes first: it is not to be recorded. The hooks come last, as a callback that
     * finds nobody recording removes them. */
    kpti_installation_prepare();
    remove_if_idle(1); /* a stop without the GIL has left hooks, and maybe with another tool */
    if (tracer->wants_gc) kpti_gc_install();
    kpti_session_lock();
    joined = kpti_roster_add_locked(tracer);
    tracer->runs[tracer->run_count - 1].start_ticks = kpti_tracer_ticks(tracer);
    kpti_session_bump();
    kpti_session_unlock();
    if (!joined)
        return kpti_fail(error, KPT_E_LIMIT, "%d tracers record already", KPTI_MOST_RECORDING);
    kpti_idle_record(tracer);
    status = kpti_hooks_install(tracer->args.tool_id, tracer->env->host.name, error);
    if (status != KPT_OK) {
        kpti_session_stop(tracer); /* with another tracer's hooks, threads have begun to record */
    }
    return status;
}

static void add_starting(int count)
{
    kpti_session_lock();
    starting += count;
    kpti_session_unlock();
}

kpt_status kpti_session_start(kpti_tracer *tracer, kpti_error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    kpt_status status;
    (void)pthread_once(&once, prepare_once);
    kpti_installation_enter();
    add_starting(1);
    status = start_inside(tracer, error);
    add_starting(-1);
    if (status != KPT_OK) kpti_session_remove_if_idle();
    kpti_installation_leave();
    return status;
}

/* Whether a thread has been in the middle of an append to one of the tracer's streams all the time since
 * ROUND began: it may not have seen yet what was changed before. Once out, it will at its next append; all
 * of them at once are hardly ever out where many work. */
static int any_busy(kpti_tracer *tracer, uint32_t round)
{
    int busy = 0;
    kpti_session_lock();
    for (kpti_stream *s = tracer->streams; s; s = s->sibling) {
        if (s->settled == round) continue;
        if (s->thread && s->thread != kpti_thread_self &&
            atomic_load_explicit(&s->thread->busy, memory_order_acquire))
            busy = 1;
        else
            s->settled = round;
    }
    kpti_session_unlock();
    return busy;
}

/* A callback takes nanoseconds, unless its thread was switched off in the middle. If we hold the GIL,
 * that thread may be waiting for it. */
void kpti_session_settle(kpti_tracer *tracer)
{
    enum { SPINS = 100 };
    const uint32_t round = ++tracer->settlings;
    kpti_barrier_all();
    for (int i = 0; any_busy(tracer, round); i++) {
        if (i < SPINS) continue;
        if (kpti_may_touch_python()) {
            Py_BEGIN_ALLOW_THREADS;
            (void)sched_yield();
            Py_END_ALLOW_THREADS;
        } else {
            (void)sched_yield();
        }
    }
    kpti_barrier_all();
}

void kpti_session_stop(kpti_tracer *tracer)
{
    int last;
    kpti_session_lock();
    if (tracer->bit) tracer->runs[tracer->run_count - 1].stop_ticks = kpti_tracer_ticks(tracer);
    kpti_session_forget_locked(tracer);
    last = kpti_session_is_idle_locked();
    kpti_session_unlock();
    kpti_host_calls_wait(tracer);
    kpti_session_settle(tracer);
    kpti_session_lock();
    for (kpti_stream *s = tracer->streams; s; s = s->sibling)
        kpti_stream_seal_locked(s);
    kpti_session_unlock();
    /* No stream is added or freed while the tracer is stopped and its host waits for this. */
    for (kpti_stream *s = tracer->forked ? NULL : tracer->streams; s; s = s->sibling)
        kpti_hand_to_sink(s, tracer->runs[tracer->run_count - 1].stop_ticks);
    /* Without the GIL the next callback removes the hooks. */
    if (last && kpti_may_touch_python()) kpti_session_remove_if_idle();
}

/* A tracer that the interpreter's end has stopped is stopped again by its host, which settles and
 * seals; here it is enough that nothing more is recorded, and no thread is inside. */
void kpti_session_end(void)
{
    kpti_session_lock();
    forget_all_locked(0);
    kpti_session_unlock();
}

void kpti_session_exit(void)
{
    kpti_session_end();
    kpti_session_remove_if_idle();
}

void kpti_session_want_callers(kpti_tracer *tracer)
{
    kpti_session_lock();
    atomic_store_explicit(&tracer->wants_callers, 1, memory_order_relaxed);
    kpti_session_bump();
    kpti_session_unlock();
}

void kpti_session_add_thread(kpti_thread *thread)
{
    kpti_session_lock();
    thread->next = threads;
    threads = thread;
    kpti_session_unlock();
}

void kpti_session_remove_thread(kpti_thread *thread)
{
    kpti_thread **link = &threads;
    kpti_session_lock();
    while (*link && *link != thread)
        link = &(*link)->next;
    if (*link) *link = thread->next;
    kpti_host_calls_drop_locked(thread);
    while (thread->owned) {
        kpti_stream *stream = thread->owned;
        thread->owned = stream->owned_next;
        stream->thread_flags |= KPT_THREAD_ENDED;
        stream->thread = NULL;
        if (!stream->tracer) {
            free(stream);
            continue;
        }
        kpti_stream_seal_locked(stream);
        kpti_room_leave_locked(stream);
    }
    kpti_session_unlock();
}
