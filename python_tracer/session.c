#include "session.h"

#include <pthread.h>
#include <sched.h>

#include "fork.h"
#include "function.h"
#include "gc.h"
#include "hooks.h"
#include "idle.h"
#include "installation.h"
#include "platform.h"
#include "thread.h"
#include "tracer.h"

_Atomic uint32_t kpti_session_epoch = 1;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static kpti_tracer *recording[KPTI_MOST_RECORDING]; /* by bit */
static _Atomic uint32_t changes;                    /* how often one was added to them */
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
    atomic_fetch_add(&kpti_session_epoch, 1);
}

static int anybody_locked(void)
{
    for (int i = 0; i < KPTI_MOST_RECORDING; i++)
        if (recording[i]) return 1;
    return 0;
}

/* Removes the hooks, if nobody records. Needs the GIL or a thread state. */
static void remove_if_idle(void)
{
    int idle;
    kpti_installation_enter();
    kpti_session_lock();
    idle = !anybody_locked(); /* somebody may have begun since the caller looked */
    kpti_session_unlock();
    if (idle) kpti_installation_remove();
    kpti_installation_leave();
}

/* Puts TRACER among those that record. */
static int join_locked(kpti_tracer *tracer)
{
    for (int i = 0; i < KPTI_MOST_RECORDING; i++) {
        if (recording[i]) continue;
        recording[i] = tracer;
        tracer->bit = UINT32_C(1) << i;
        atomic_fetch_add(&changes, 1);
        return 1;
    }
    return 0;
}

void kpti_session_forget_locked(kpti_tracer *tracer)
{
    for (int i = 0; i < KPTI_MOST_RECORDING; i++)
        if (recording[i] == tracer) recording[i] = NULL;
    for (kpti_stream *s = tracer->streams; s; s = s->sibling)
        kpti_stream_close(s);
    tracer->bit = 0;
    kpti_session_bump();
}

void kpti_session_forked_locked(void)
{
    kpti_thread *self = kpti_thread_self;
    if (self) {
        self->next = NULL;
        atomic_store_explicit(&self->busy, 0, memory_order_relaxed);
    }
    threads = self;
    kpti_installation_forked();
    kpti_session_bump();
}

static void prepare_once(void)
{
    kpti_fork_watch();
    (void)kpti_membarrier_register();
}

/* Those that record stop at NOW. */
static void forget_all_locked(uint64_t now)
{
    for (int i = 0; i < KPTI_MOST_RECORDING; i++) {
        kpti_tracer *tracer = recording[i];
        if (!tracer) continue;
        tracer->runs[tracer->run_count - 1].stop_ticks = now;
        kpti_session_forget_locked(tracer);
    }
}

static kpt_status start_inside(kpti_tracer *tracer, kpti_error *error)
{
    kpt_status status;
    int joined;
    /* What runs Python comes first: it is not to be recorded. The hooks come last, as a callback that
     * finds nobody recording removes them. */
    kpti_installation_prepare();
    remove_if_idle(); /* a stop without the GIL has left hooks, and maybe with another tool */
    if (tracer->wants_gc) kpti_gc_install();
    kpti_session_lock();
    joined = join_locked(tracer);
    tracer->runs[tracer->run_count - 1].start_ticks = kpti_ticks();
    kpti_session_bump();
    kpti_session_unlock();
    if (!joined)
        return kpti_fail(error, KPT_E_LIMIT, "%d tracers record already", KPTI_MOST_RECORDING);
    kpti_idle_record(tracer);
    status = kpti_hooks_install(tracer->args.tool_id, error);
    if (status != KPT_OK) {
        kpti_session_stop(tracer); /* with another tracer's hooks, threads have begun to record */
    }
    return status;
}

kpt_status kpti_session_start(kpti_tracer *tracer, kpti_error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    kpt_status status;
    (void)pthread_once(&once, prepare_once);
    kpti_installation_enter();
    status = start_inside(tracer, error);
    kpti_installation_leave();
    return status;
}

/* Whether a thread is in the middle of an append to one of the tracer's streams. */
static int any_busy(kpti_tracer *tracer)
{
    int busy = 0;
    kpti_session_lock();
    for (kpti_stream *s = tracer->streams; s && !busy; s = s->sibling)
        busy = s->thread && s->thread != kpti_thread_self &&
               atomic_load_explicit(&s->thread->busy, memory_order_acquire);
    kpti_session_unlock();
    return busy;
}

/* Where the system has no such barrier (old kernels, some sandboxes) the other threads have no fence to
 * make up for it: but no processor keeps a store to itself for as long as this takes. */
static void barrier(void)
{
    const struct timespec millisecond = {0, 1000000};
    if (!kpti_membarrier()) (void)nanosleep(&millisecond, NULL);
}

/* A callback takes nanoseconds, unless its thread was switched off in the middle. If we hold the GIL,
 * that thread may be waiting for it. */
void kpti_session_settle(kpti_tracer *tracer)
{
    enum { SPINS = 100 };
    barrier();
    for (int i = 0; any_busy(tracer); i++) {
        if (i < SPINS) continue;
        if (kpti_may_touch_python()) {
            Py_BEGIN_ALLOW_THREADS;
            (void)sched_yield();
            Py_END_ALLOW_THREADS;
        } else {
            (void)sched_yield();
        }
    }
    barrier();
}

void kpti_session_stop(kpti_tracer *tracer)
{
    int last;
    kpti_session_lock();
    if (tracer->bit) tracer->runs[tracer->run_count - 1].stop_ticks = kpti_ticks();
    kpti_session_forget_locked(tracer);
    last = !anybody_locked();
    kpti_session_unlock();
    kpti_session_settle(tracer);
    kpti_session_lock();
    for (kpti_stream *s = tracer->streams; s; s = s->sibling)
        kpti_stream_seal_locked(s);
    kpti_session_unlock();
    /* No stream is added or freed while the tracer is stopped and its host waits for this. */
    for (kpti_stream *s = tracer->forked ? NULL : tracer->streams; s; s = s->sibling)
        kpti_stream_hand_rest(s, tracer->runs[tracer->run_count - 1].stop_ticks);
    /* Without the GIL the next callback removes the hooks. */
    if (last && kpti_may_touch_python()) remove_if_idle();
}

/* A tracer that the interpreter's end has stopped is stopped again by its host, which settles and
 * seals; here it is enough that nothing more is recorded, and no thread is inside. */
void kpti_session_end(void)
{
    kpti_session_lock();
    forget_all_locked(kpti_ticks());
    kpti_session_unlock();
}

void kpti_session_exit(void)
{
    kpti_session_end();
    remove_if_idle();
}

/* The thread's stream of TRACER; made if there is none. */
static kpti_stream *stream_of_locked(kpti_thread *thread, kpti_tracer *tracer)
{
    kpti_stream *stream;
    for (stream = tracer->streams; stream; stream = stream->sibling) {
        if (stream->thread == thread) return stream;
        if (!stream->thread && stream->os_tid == thread->os_tid &&
            !(stream->thread_flags & KPT_THREAD_ENDED)) {
            kpti_stream_adopt_locked(stream, thread);
            return stream;
        }
    }
    return kpti_stream_new_locked(tracer, thread);
}

/* Lets go of streams that are over. Those whose tracer is gone are nobody's any more. */
static void unlink_ended_locked(kpti_thread *thread)
{
    kpti_stream **link = &thread->owned;
    thread->streams = NULL;
    while (*link) {
        kpti_stream *stream = *link;
        if (!stream->tracer) {
            *link = stream->owned_next;
            free(stream);
            continue;
        }
        link = &stream->owned_next;
        if (atomic_load_explicit(&stream->ended, memory_order_relaxed)) continue;
        stream->next = thread->streams;
        thread->streams = stream;
    }
}

/* Streams that begin now; their host is told of the thread when the lock is free again. */
typedef struct attachment {
    kpti_stream *stream;
    uint64_t (*attach)(void *ctx, uint64_t os_tid);
    void *ctx;
} attachment;

static int begin_streams_locked(kpti_thread *thread, kpti_open_stack open, attachment *attached)
{
    uint64_t now = kpti_ticks();
    int count = 0;
    for (int i = 0; i < KPTI_MOST_RECORDING; i++) {
        kpti_tracer *tracer = recording[i];
        kpti_stream *stream;
        if (!tracer || (tracer->only_tid && tracer->only_tid != thread->os_tid)) continue;
        stream = stream_of_locked(thread, tracer);
        if (!stream || !atomic_load_explicit(&stream->ended, memory_order_relaxed)) continue;
        if (!stream->host_value && tracer->env->host.thread_attach)
            attached[count++] =
                (attachment){stream, tracer->env->host.thread_attach, tracer->env->host.ctx};
        kpti_stream_begin_locked(stream, open, now);
        stream->next = thread->streams;
        thread->streams = stream;
    }
    return count;
}

/* Whether a tracer records all code and all C calls there are, and nothing else: the quick way. */
static int is_plain(const kpti_tracer *tracer)
{
    const uint32_t choosy = KPT_TRACE_NO_C_CALLS | KPT_TRACE_ALL_CALLABLES;
    return !tracer->filters.count && !(tracer->args.flags & choosy) && !tracer->args.max_depth &&
           !tracer->args.overhead_permille;
}

/* All tracers, if none of them is choosy; else 0. */
static uint32_t every_locked(void)
{
    uint32_t mask = 0;
    for (int i = 0; i < KPTI_MOST_RECORDING; i++) {
        if (!recording[i]) continue;
        if (!is_plain(recording[i])) return 0;
        mask |= recording[i]->bit;
    }
    return mask;
}

static uint32_t calls_of(const kpti_thread *thread)
{
    uint32_t mask = 0;
    for (const kpti_stream *s = thread->streams; s; s = s->next)
        mask |= s->c_bit;
    return mask;
}

void kpti_session_sync(kpti_thread *thread, int entering)
{
    attachment attached[KPTI_MOST_RECORDING];
    kpti_open_stack open;
    int count;
    int idle;
    /* What follows may run Python and the host: whoever waits for us must not wait for that. */
    atomic_store_explicit(&thread->busy, 0, memory_order_release);
    for (;;) {
        uint32_t before = atomic_load(&changes);
        open = kpti_thread_walk(thread, entering);
        kpti_session_lock();
        if (before == atomic_load(&changes)) break;
        kpti_session_unlock(); /* the walk has not asked all those that record now */
    }
    thread->epoch = atomic_load(&kpti_session_epoch);
    kpti_thread_forget(thread);
    unlink_ended_locked(thread);
    count = begin_streams_locked(thread, open, attached);
    thread->every = every_locked();
    thread->calls = calls_of(thread);
    idle = !anybody_locked();
    kpti_session_unlock();
    for (int i = 0; i < count; i++)
        attached[i].stream->host_value = attached[i].attach(attached[i].ctx, thread->os_tid);
    if (idle) remove_if_idle();
    atomic_store_explicit(&thread->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

uint32_t kpti_session_mask(uint32_t function, kpt_str file, kpt_str module, uint32_t mark)
{
    uint32_t mask = 0;
    kpti_session_lock();
    for (int i = 0; i < KPTI_MOST_RECORDING; i++) {
        const kpti_tracer *tracer = recording[i];
        if (!tracer) continue;
        if (kpti_filters_allow(&tracer->filters, file, module) &&
            kpti_guard_allows_locked(&tracer->guard, function))
            mask |= tracer->bit;
        if (tracer->args.max_depth) mask |= KPTI_MASK_GENERAL;
        for (uint32_t k = 0; mark && k < tracer->watch_count; k++)
            if (tracer->watches[k].mark == mark) mask |= KPTI_MASK_WATCHED;
    }
    kpti_session_unlock();
    return mask;
}

int kpti_session_needs_module(void)
{
    int needed = 0;
    kpti_session_lock();
    for (int i = 0; i < KPTI_MOST_RECORDING; i++)
        needed |= recording[i] && recording[i]->filters.any_module;
    kpti_session_unlock();
    return needed;
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
    while (thread->owned) {
        kpti_stream *stream = thread->owned;
        thread->owned = stream->owned_next;
        stream->thread_flags |= KPT_THREAD_ENDED;
        stream->thread = NULL;
        if (stream->tracer)
            kpti_stream_seal_locked(stream);
        else
            free(stream);
    }
    kpti_session_unlock();
}
