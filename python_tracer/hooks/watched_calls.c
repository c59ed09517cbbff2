#include "python_tracer/hooks/watched_calls.h"

#include "core/base/platform.h"
#include "python_tracer/chunks/event_stream.h"
#include "python_tracer/frames/function_naming.h"
#include "python_tracer/frames/host_watch.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/interpreter/pending_exception.h"
#include "python_tracer/state/host_callbacks.h"
#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/tracing_lock.h"

static int find_watch(const kpti_stream *stream, uint32_t mark, kpti_watch_call *out)
{
    int found;
    kpti_tracing_lock();
    found = stream->tracer && !atomic_load_explicit(&stream->ended, memory_order_relaxed) &&
            kpti_watch_find_locked(stream->tracer, mark, out);
    kpti_tracing_unlock();
    return found;
}

/* Notifies the stream's host, which may run Python. Returns the host's answer. */
static uint64_t notify_host(kpti_thread *thread, const kpti_watch_call *t, PyObject **self)
{
    PyFrameObject *frame;
    kpti_pending_exception pending;
    int entering = kpti_callback_suspend(thread);
    uint64_t answer;
    pending = kpti_exception_save();
    frame = *self ? NULL : PyThreadState_GetFrame(PyThreadState_Get());
    if (frame) *self = kpti_watch_first_argument(frame);
    Py_XDECREF(frame);
    answer = t->notify(t->ctx, t->watch, *self, t->call_id);
    kpti_host_call_end(t->call);
    kpti_exception_restore(pending);
    kpti_callback_resume(thread, entering);
    return answer;
}

/* Appends the ENTER and, in the slack after it, the line that it was called from and the answer. */
static void append(kpti_stream *stream, uint32_t word, uint32_t caller, const kpti_watch_call *t,
                   uint64_t answer)
{
    uint64_t now = kpti_ticks();
    uint64_t at;
    if (!kpti_stream_append_now(stream, word | KPTI_EVENT_ENTER, &now, &at)) return;
    kpti_stream_append_caller(stream, caller, at);
    if (!t) return;
    kpti_stream_append_plain(
        stream, kpti_event_make(KPTI_EVENT_WATCH, (uint32_t)t->call_id & KPTI_MAX_NUMBER, at));
    kpti_stream_append_plain(stream, answer);
}

void kpti_watch_enter(kpti_thread *thread, PyCodeObject *code, uint32_t word, uint32_t mask,
                      uint32_t caller)
{
    const uint32_t mark = kpti_name_mark(code);
    const uint64_t begin = kpti_ticks();
    PyObject *self = NULL;
    int entering;
    for (kpti_stream *stream = thread->streams; stream; stream = stream->next) {
        uint64_t answer = 0;
        kpti_watch_call t;
        int watched;
        if (!(mask & stream->bit) || !kpti_stream_within_depth(stream, KPTI_EVENT_ENTER)) continue;
        if (stream->begun > begin) continue; /* began in a host's callback: has the call as open */
        watched = find_watch(stream, mark, &t);
        if (watched) answer = notify_host(thread, &t, &self);
        append(stream, word, caller, watched ? &t : NULL, answer);
    }
    entering = kpti_callback_suspend(thread);
    Py_XDECREF(self); /* the call has its own reference, unless the host removed it */
    kpti_callback_resume(thread, entering);
}
