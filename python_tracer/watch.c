#include "watch.h"

#include "name.h"
#include "session.h"
#include "tracer.h"

/* The first argument of the call whose frame is on top: a new reference, or NULL. */
static PyObject *first_argument(PyCodeObject *code)
{
    PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
    PyObject *names = code->co_argcount > 0 ? kpti_code_varnames(code) : NULL;
    PyObject *name = names && PyTuple_GET_SIZE(names) > 0 ? PyTuple_GET_ITEM(names, 0) : NULL;
    const char *text = name ? PyUnicode_AsUTF8(name) : NULL;
    PyObject *value = frame && text ? kpti_frame_local(frame, text) : NULL;
    PyErr_Clear();
    Py_XDECREF(names);
    Py_XDECREF(frame);
    return value;
}

/* What a tracer's host is to be told; copied, as no lock is held while it is. */
typedef struct telling {
    uint64_t (*tell)(void *ctx, uint64_t watch, void *self, uint64_t call_id);
    void *ctx;
    uint64_t watch;
    uint64_t call_id;
} telling;

static int find_telling(kpti_stream *stream, uint32_t mark, telling *out)
{
    int found = 0;
    kpti_session_lock();
    if (stream->tracer && !atomic_load_explicit(&stream->ended, memory_order_relaxed)) {
        kpti_tracer *tracer = stream->tracer;
        for (uint32_t i = 0; i < tracer->watch_count && !found; i++) {
            if (tracer->watches[i].mark != mark) continue;
            *out = (telling){tracer->env->host.on_watched_call, tracer->env->host.ctx,
                             tracer->watches[i].watch, ++tracer->watched_calls};
            found = 1;
        }
    }
    kpti_session_unlock();
    return found;
}

void kpti_watch_call(kpti_thread *thread, PyCodeObject *code, uint32_t recorded, uint64_t ticks)
{
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
    PyObject *self;
    uint32_t mark = kpti_name_mark(code);
    /* The host may run Python: whoever waits for this thread must not wait for that. */
    atomic_store_explicit(&thread->busy, 0, memory_order_release);
    PyErr_Fetch(&type, &value, &traceback);
    self = first_argument(code);
    for (kpti_stream *stream = thread->streams; stream; stream = stream->next) {
        telling t;
        uint64_t answer;
        if (!(recorded & stream->bit) || !find_telling(stream, mark, &t)) continue;
        answer = t.tell(t.ctx, t.watch, self, t.call_id);
        PyErr_Clear();
        atomic_store_explicit(&thread->busy, 1, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
        if (kpti_stream_append(stream,
                               (uint32_t)(t.call_id & KPTI_MOST_NUMBER) << KPTI_KIND_BITS |
                                   KPTI_EVENT_WATCH,
                               ticks))
            kpti_stream_append_plain(stream, answer);
        atomic_store_explicit(&thread->busy, 0, memory_order_release);
    }
    Py_XDECREF(self);
    PyErr_Restore(type, value, traceback);
    atomic_store_explicit(&thread->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}
