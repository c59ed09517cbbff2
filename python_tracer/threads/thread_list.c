#include "python_tracer/threads/thread_list.h"

#include "core/base/assert.h"
#include "python_tracer/chunks/ended_streams.h"
#include "python_tracer/chunks/event_stream.h"
#include "python_tracer/chunks/stream_owner.h"
#include "python_tracer/state/host_callbacks.h"
#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/tracing_lock.h"

static kpti_thread *threads;

void kpti_thread_list_forked_locked(void)
{
    kpti_thread *self = kpti_thread_self;
    kpti_assert(kpti_tracing_lock_is_mine());
    if (self) {
        self->next = NULL;
        atomic_store_explicit(&self->busy, 0, memory_order_relaxed);
    }
    threads = self;
}

void kpti_thread_list_add(kpti_thread *thread)
{
    kpti_tracing_lock();
    kpti_assert(thread != threads && !thread->owned);
    thread->next = threads;
    threads = thread;
    kpti_tracing_unlock();
}

void kpti_thread_list_remove(kpti_thread *thread)
{
    kpti_thread **link = &threads;
    kpti_tracing_lock();
    while (*link && *link != thread)
        link = &(*link)->next;
    if (*link) *link = thread->next;
    kpti_host_calls_drop_locked(thread);
    while (thread->owned) {
        kpti_stream *stream = thread->owned;
        kpti_assert(stream->thread == thread);
        thread->owned = stream->owned_next;
        stream->thread_flags |= KPT_THREAD_ENDED;
        stream->thread = NULL;
        if (!stream->tracer) {
            kpti_stream_free(stream);
            continue;
        }
        kpti_stream_seal_locked(stream);
        kpti_ended_add_locked(stream, thread->suspended != 0);
    }
    kpti_tracing_unlock();
}
