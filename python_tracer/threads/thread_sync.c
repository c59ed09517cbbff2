#include "python_tracer/threads/thread_sync.h"

#include "core/base/assert.h"
#include "core/base/platform.h"
#include "python_tracer/chunks/event_stream.h"
#include "python_tracer/chunks/stream_owner.h"
#include "python_tracer/frames/open_frames.h"
#include "python_tracer/state/active_tracers.h"
#include "python_tracer/state/host_callbacks.h"
#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/tracer_state.h"
#include "python_tracer/state/tracing_lock.h"
#include "python_tracer/threads/greenlets.h"
#include "python_tracer/threads/hook_removal.h"
#include "python_tracer/threads/traced_thread.h"

/* Returns the thread's stream of TRACER. Makes the stream if there is none. Returns NULL if there is no
 * memory. */
static kpti_stream *stream_of_locked(kpti_thread *thread, kpti_tracer *tracer)
{
    kpti_stream *stream;
    for (stream = thread->owned; stream; stream = stream->owned_next)
        if (stream->tracer == tracer) return stream;
    for (stream = tracer->orphans ? tracer->streams : NULL; stream; stream = stream->sibling) {
        if (!stream->thread && stream->os_tid == thread->os_tid &&
            !(stream->thread_flags & KPT_THREAD_ENDED)) {
            kpti_stream_adopt_locked(stream, thread);
            return stream;
        }
    }
    return kpti_stream_new_locked(tracer, thread);
}

/* Rebuilds thread->streams from the streams that have not ended. Their order never changes, since a
 * suspended callback may be iterating over them. Streams whose tracer is destroyed are freed once no
 * callback is suspended. */
static void relink_locked(kpti_thread *thread)
{
    kpti_stream **link = &thread->owned;
    kpti_assert(kpti_tracing_lock_is_mine() && thread->suspended);
    thread->streams = NULL;
    while (*link) {
        kpti_stream *stream = *link;
        if (!stream->tracer && thread->suspended == 1) { /* only kpti_sync itself is */
            *link = stream->owned_next;
            kpti_stream_free(stream);
            continue;
        }
        link = &stream->owned_next;
        if (atomic_load_explicit(&stream->ended, memory_order_relaxed)) continue;
        stream->enter_bit = stream->tracer->needs_caller_lines ? KPTI_NO_BIT : stream->bit;
        stream->next = thread->streams;
        thread->streams = stream;
    }
}

/* A stream that begins now. thread_attach is called after the lock is released. */
typedef struct attachment {
    kpti_stream *stream;
    kpti_host_call *call;
    uint64_t (*attach)(void *ctx, uint64_t os_tid);
    void *ctx;
} attachment;

/* Whether thread_attach must be called for STREAM. It is called once, whatever the host returns. */
static int attach_locked(kpti_stream *stream, attachment *out)
{
    const kpt_host *host = &stream->tracer->env->host;
    kpti_host_call *call;
    if (stream->attached || !host->thread_attach) return 0;
    call = kpti_host_call_begin_locked(stream->tracer);
    if (!call) return 0; /* the next run tries again */
    stream->attached = 1;
    *out = (attachment){stream, call, host->thread_attach, host->ctx};
    return 1;
}

/* Returns whether THREAD was not inside Python yet when the run of STREAM's tracer began: a thread that was has a
 * placeholder (idle_threads.h), or was traced before. */
static uint32_t is_new_locked(const kpti_stream *stream, const kpti_thread *thread)
{
    const uint64_t known = stream->tracer->all_known_ticks;
    return known && thread->made_ticks > known && !stream->idle;
}

static int begin_streams_locked(kpti_thread *thread, kpti_open_stack open, attachment *attached)
{
    const uint64_t real_tid = kpti_thread_real(thread)->os_tid;
    uint64_t now = kpti_ticks();
    int count = 0;
    for (int i = 0; i < KPTI_MAX_TRACERS; i++) {
        kpti_tracer *tracer = kpti_tracers_at_locked(i);
        kpti_stream *stream;
        if (!tracer || (tracer->only_tid && tracer->only_tid != real_tid)) continue;
        stream = stream_of_locked(thread, tracer);
        if (!stream || !atomic_load_explicit(&stream->ended, memory_order_relaxed)) continue;
        kpti_assert(stream->tracer == tracer && stream->thread == thread);
        count += attach_locked(stream, &attached[count]);
        open.are_new = is_new_locked(stream, thread);
        kpti_stream_begin_locked(stream, open, now);
    }
    return count;
}

static uint32_t calls_of(const kpti_thread *thread)
{
    uint32_t mask = 0;
    for (const kpti_stream *s = thread->streams; s; s = s->next)
        mask |= s->c_bit;
    return mask;
}

static uint32_t others_of(const kpti_thread *thread)
{
    uint32_t mask = 0;
    for (const kpti_stream *s = thread->streams; s; s = s->next)
        mask |= s->all_bit;
    return mask;
}

static uint32_t callers_of(const kpti_thread *thread)
{
    uint32_t mask = 0;
    for (const kpti_stream *s = thread->streams; s; s = s->next)
        if (s->enter_bit == KPTI_NO_BIT) mask |= s->bit;
    return mask;
}

/* Returns the mask of tracers that watch calls and have not begun on THREAD. Their hosts are notified of
 * its open calls. */
static uint32_t asking_tracers(const kpti_thread *thread)
{
    uint32_t mask = 0;
    kpti_tracing_lock();
    for (int i = 0; i < KPTI_MAX_TRACERS; i++) {
        const kpti_tracer *tracer = kpti_tracers_at_locked(i);
        if (tracer && tracer->watch_count) mask |= tracer->bit;
    }
    for (const kpti_stream *s = thread->owned; s; s = s->owned_next)
        if (!atomic_load_explicit(&s->ended, memory_order_relaxed)) mask &= ~s->bit;
    kpti_tracing_unlock();
    return mask;
}

/* Calls thread_attach for the streams that have begun. */
static void attach_streams(const kpti_thread *thread, const attachment *attached, int count)
{
    for (int i = 0; i < count; i++) {
        attached[i].stream->host_value = attached[i].attach(attached[i].ctx, thread->os_tid);
        kpti_host_call_end(attached[i].call);
    }
}

/* Begins the missing streams with OPEN. Returns how many need thread_attach. */
static int begin_locked(kpti_thread *thread, kpti_open_stack open, attachment *attached)
{
    int count;
    thread->epoch = atomic_load(&kpti_tracing_epoch);
    kpti_thread_forget(thread);
    count = begin_streams_locked(thread, open, attached);
    relink_locked(thread);
    thread->every = kpti_tracers_every_locked();
    thread->calls = calls_of(thread);
    thread->others = others_of(thread);
    thread->callers = callers_of(thread);
    return count;
}

static void sync_thread(kpti_thread *thread, int entering)
{
    attachment attached[KPTI_MAX_TRACERS];
    kpti_open_stack open;
    int count;
    int idle;
    (void)kpti_callback_suspend(thread);
    for (;;) {
        uint32_t before = kpti_tracers_changes();
        open = kpti_open_frames_own(thread, entering, asking_tracers(thread));
        kpti_tracing_lock();
        if (before == kpti_tracers_changes()) break;
        kpti_tracing_unlock(); /* tracers were added during the walk: their hosts were not notified */
        kpti_open_frames_free(open);
    }
    open.was_walked = 1;
    count = begin_locked(thread, open, attached);
    idle = kpti_tracers_are_idle_locked(0);
    kpti_tracing_unlock();
    kpti_open_frames_free(open);
    attach_streams(thread, attached, count);
    if (idle) kpti_remove_hooks_if_idle(0);
    kpti_callback_resume(thread, entering);
}

void kpti_sync(kpti_thread *thread, int entering)
{
    const uint64_t now = atomic_load_explicit(&kpti_tracing_epoch, memory_order_acquire);
    kpti_assert(thread == kpti_thread_self && !kpti_tracing_lock_is_mine());
    if (now / KPTI_TRACERS_STEP != thread->epoch / KPTI_TRACERS_STEP) {
        sync_thread(thread, entering);
        return;
    }
    kpti_thread_forget_dead(thread);
    /* The code of a module dies once the module has been imported, so greenlet may be loaded now. */
    (void)kpti_callback_suspend(thread);
    kpti_greenlets_watch(thread);
    kpti_callback_resume(thread, entering);
}

void kpti_sync_for_operator(kpti_thread *thread)
{
    const uint64_t now = atomic_load_explicit(&kpti_tracing_epoch, memory_order_acquire);
    const kpti_open_stack unknown = {0};
    attachment attached[KPTI_MAX_TRACERS];
    int count;
    if (now / KPTI_TRACERS_STEP == thread->epoch / KPTI_TRACERS_STEP) return;
    if (kpti_may_touch_python()) {
        sync_thread(thread, 0);
        return;
    }
    (void)kpti_callback_suspend(thread); /* thread_attach must not hold up a stop */
    kpti_tracing_lock();
    count = begin_locked(thread, unknown, attached);
    kpti_tracing_unlock();
    attach_streams(thread, attached, count);
    kpti_callback_resume(thread, 0);
}
