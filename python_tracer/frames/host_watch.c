#include "python_tracer/frames/host_watch.h"

#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/state/active_tracers.h"
#include "python_tracer/state/tracing_lock.h"

PyObject *kpti_watch_first_argument(PyFrameObject *frame)
{
    PyCodeObject *code = kpti_frame_code(frame);
    PyObject *names = code->co_argcount > 0 ? kpti_code_varnames(code) : NULL;
    PyObject *name = names && PyTuple_GET_SIZE(names) > 0 ? PyTuple_GET_ITEM(names, 0) : NULL;
    PyObject *value = name ? kpti_frame_local(frame, name) : NULL;
    PyErr_Clear();
    Py_XDECREF(names);
    return value;
}

int kpti_watch_find_locked(kpti_tracer *tracer, uint32_t mark, kpti_watch_call *out)
{
    for (uint32_t i = 0; i < tracer->watch_count; i++) {
        if (tracer->watches[i].mark != mark) continue;
        *out = (kpti_watch_call){kpti_host_call_begin_locked(tracer),
                                 tracer->env->host.on_watched_call, tracer->env->host.ctx,
                                 tracer->watches[i].watch, tracer->watched_calls + 1};
        if (!out->call) return 0; /* no memory */
        tracer->watched_calls++;
        return 1;
    }
    return 0;
}

int kpti_watch_open(PyFrameObject *frame, uint32_t mark, int i, kpti_open_answer *out)
{
    kpti_tracer *tracer;
    PyObject *self;
    kpti_watch_call t;
    int found;
    kpti_tracing_lock();
    tracer = kpti_tracers_at_locked(i);
    found = tracer && kpti_watch_find_locked(tracer, mark, &t);
    kpti_tracing_unlock();
    if (!found) return 0;
    self = kpti_watch_first_argument(frame);
    out->call_id = t.call_id;
    out->answer = t.notify(t.ctx, t.watch, self, t.call_id);
    kpti_host_call_end(t.call);
    PyErr_Clear();
    Py_XDECREF(self);
    return 1;
}
