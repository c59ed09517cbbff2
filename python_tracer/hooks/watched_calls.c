#include "python_tracer/hooks/watched_calls.h"

#include "core/base/platform.h"
#include "python_tracer/threads/active_tracers.h"
#include "python_tracer/threads/function_naming.h"
#include "python_tracer/threads/host_callbacks.h"
#include "python_tracer/threads/tracing_state.h"
#include "python_tracer/tracer.h"

/* The first argument of the call in FRAME: a new reference, or NULL. */
static PyObject *first_argument(PyFrameObject *frame)
{
    PyCodeObject *code = kpti_frame_code(frame);
    PyObject *names = code->co_argcount > 0 ? kpti_code_varnames(code) : NULL;
    PyObject *name = names && PyTuple_GET_SIZE(names) > 0 ? PyTuple_GET_ITEM(names, 0) : NULL;
    const char *text = name ? PyUnicode_AsUTF8(name) : NULL;
    PyObject *value = text ? kpti_frame_local(frame, text) : NULL;
    PyErr_Clear();
    Py_XDECREF(names);
    return value;
}

/* What a tracer's host is to be told; copied, as no lock is held while it is. */
typedef struct telling {
    kpti_host_call *call;
    uint64_t (*tell)(void *ctx, uint64_t watch, void *self, uint64_t call_id);
    void *ctx;
    uint64_t watch;
    uint64_t call_id;
} telling;

/* The host call for TRACER about a call of the code with MARK, which is then in progress; 0: none. */
static int find_telling_locked(kpti_tracer *tracer, uint32_t mark, telling *out)
{
    for (uint32_t i = 0; i < tracer->watch_count; i++) {
        if (tracer->watches[i].mark != mark) continue;
        *out =
            (telling){kpti_host_call_begin_locked(tracer), tracer->env->host.on_watched_call,
                      tracer->env->host.ctx, tracer->watches[i].watch, tracer->watched_calls + 1};
        if (!out->call) return 0; /* no memory */
        tracer->watched_calls++;
        return 1;
    }
    return 0;
}

static int find_telling(const kpti_stream *stream, uint32_t mark, telling *out)
{
    int found;
    kpti_session_lock();
    found = stream->tracer && !atomic_load_explicit(&stream->ended, memory_order_relaxed) &&
            find_telling_locked(stream->tracer, mark, out);
    kpti_session_unlock();
    return found;
}

int kpti_watch_open(PyFrameObject *frame, uint32_t mark, int i, kpti_open_answer *out)
{
    kpti_tracer *tracer;
    PyObject *self;
    telling t;
    int found;
    kpti_session_lock();
    tracer = kpti_roster_at_locked(i);
    found = tracer && find_telling_locked(tracer, mark, &t);
    kpti_session_unlock();
    if (!found) return 0;
    self = first_argument(frame);
    out->call_id = t.call_id;
    out->answer = t.tell(t.ctx, t.watch, self, t.call_id);
    kpti_host_call_end(t.call);
    PyErr_Clear();
    Py_XDECREF(self);
    return 1;
}

/* Tells the stream's host, which may run Python. */
static uint64_t tell(kpti_thread *thread, const telling *t, PyObject **self)
{
    PyFrameObject *frame;
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
    int entering = kpti_thread_step_out(thread);
    uint64_t answer;
    PyErr_Fetch(&type, &value, &traceback);
    frame = *self ? NULL : PyThreadState_GetFrame(PyThreadState_Get());
    if (frame) *self = first_argument(frame);
    Py_XDECREF(frame);
    answer = t->tell(t->ctx, t->watch, *self, t->call_id);
    kpti_host_call_end(t->call);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    kpti_thread_step_in(thread, entering);
    return answer;
}

/* Appends the ENTER, and behind it, in the slack, the line that it was called from, and the answer. */
static void append(kpti_stream *stream, uint32_t word, uint32_t caller, const telling *t,
                   uint64_t answer)
{
    uint64_t now = kpti_ticks();
    uint64_t at;
    if (!kpti_stream_append_now(stream, word | KPTI_EVENT_ENTER, &now, &at)) return;
    kpti_stream_append_caller(stream, caller, at);
    if (!t) return;
    kpti_stream_append_plain(
        stream, kpti_event_make(KPTI_EVENT_WATCH, (uint32_t)t->call_id & KPTI_MOST_NUMBER, at));
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
        telling t;
        int told;
        if (!(mask & stream->bit) || !kpti_stream_within_depth(stream, KPTI_EVENT_ENTER)) continue;
        if (stream->begun > begin) continue; /* in a host's callback: it has found the call */
        told = find_telling(stream, mark, &t);
        if (told) answer = tell(thread, &t, &self);
        append(stream, word, caller, told ? &t : NULL, answer);
    }
    entering = kpti_thread_step_out(thread);
    Py_XDECREF(self); /* the call has its own reference, unless the host took that away */
    kpti_thread_step_in(thread, entering);
}
