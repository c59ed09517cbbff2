#include "python_tracer/chunks/stream_owner.h"

#include <stdlib.h>

#include "core/base/assert.h"
#include "python_tracer/state/tracing_lock.h"

kpti_stream *kpti_stream_make_locked(kpti_tracer *tracer, uint64_t os_tid, const char *name)
{
    kpti_stream *stream = calloc(1, sizeof *stream); /* owned by the thread, not by the host */
    if (!stream) return NULL;
    stream->tracer = tracer;
    stream->os_tid = os_tid;
    stream->sealed = 1;
    (void)snprintf(stream->name, sizeof stream->name, "%s", name);
    stream->index = tracer->stream_count++;
    stream->sibling = tracer->streams;
    stream->sibling_link = &tracer->streams;
    if (stream->sibling) stream->sibling->sibling_link = &stream->sibling;
    tracer->streams = stream;
    atomic_store_explicit(&stream->ended, 1, memory_order_relaxed);
    return stream;
}

kpti_stream *kpti_stream_new_locked(kpti_tracer *tracer, kpti_thread *thread)
{
    kpti_stream *stream = kpti_stream_make_locked(tracer, thread->os_tid, thread->name);
    if (!stream) return NULL;
    stream->thread = thread;
    stream->owned_next = thread->owned;
    thread->owned = stream;
    return stream;
}

void kpti_stream_adopt_locked(kpti_stream *stream, kpti_thread *thread)
{
    kpti_assert(kpti_tracing_lock_is_mine() && !stream->thread && stream->tracer->orphans);
    stream->thread = thread;
    stream->direct_handle = 0; /* its operators had another thread of the host */
    stream->owned_next = thread->owned;
    thread->owned = stream;
    stream->tracer->orphans--;
}

void kpti_stream_abandon_locked(kpti_stream *stream)
{
    kpti_stream **link = &stream->thread->owned;
    while (*link && *link != stream)
        link = &(*link)->owned_next;
    if (*link) *link = stream->owned_next;
    stream->thread = NULL;
}

void kpti_stream_free(kpti_stream *stream)
{
    kpti_assert(!stream->first && !stream->later);
    kpti_open_at_end_free(&stream->open_at_end);
    free(stream->inputs);
    free(stream->remote_ends);
    free(stream);
}
