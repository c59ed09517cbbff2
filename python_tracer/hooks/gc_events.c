#include "python_tracer/hooks/gc_events.h"

#include "python_tracer/chunks/event_stream.h"
#include "python_tracer/hooks/record_event.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/interpreter/pending_exception.h"
#include "python_tracer/interpreter/py_import.h"
#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/thread_state.h"
#include "python_tracer/state/tracer_state.h"

static PyObject *callable; /* in gc.callbacks; NULL: not installed */

static uint32_t info_number(PyObject *info, const char *key)
{
    PyObject *value = PyDict_Check(info) ? PyDict_GetItemString(info, key) : NULL;
    long number = value ? PyLong_AsLong(value) : 0;
    if (number == -1) PyErr_Clear();
    return number > 0 && number <= (long)KPTI_MAX_NUMBER ? (uint32_t)number : 0;
}

/* Appends the event to the streams of tracers that record collections. */
static void record_gc(kpti_thread *thread, uint32_t kind, uint32_t generation, uint64_t counts)
{
    uint64_t now = kpti_ticks();
    uint32_t word = generation << KPTI_KIND_BITS | kind;
    for (kpti_stream *stream = thread->streams; stream; stream = stream->next) {
        uint64_t at;
        if (atomic_load_explicit(&stream->ended, memory_order_relaxed) ||
            !atomic_load_explicit(&stream->tracer->wants_gc, memory_order_relaxed))
            continue;
        if (kpti_stream_append_now(stream, word, &now, &at) && kind == KPTI_EVENT_GC_END)
            kpti_stream_append_plain(stream, counts);
    }
}

/* Called by the collector with a phase, "start" or "stop", and a dict. */
static PyObject *on_gc(PyObject *self, PyObject *args)
{
    const char *phase;
    PyObject *info;
    kpti_thread *thread;
    int ends;
    uint64_t counts;
    (void)self;
    if (!PyArg_ParseTuple(args, "sO", &phase, &info)) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    ends = strcmp(phase, "stop") == 0;
    counts = (uint64_t)info_number(info, "uncollectable") << 32 | info_number(info, "collected");
    thread = kpti_slow_begin(0);
    if (thread) {
        record_gc(thread, ends ? KPTI_EVENT_GC_END : KPTI_EVENT_GC_BEGIN,
                  info_number(info, "generation"), counts);
        kpti_slow_end(thread);
    }
    Py_RETURN_NONE;
}

static PyMethodDef method = {"kpytrace_gc_callback", on_gc, METH_VARARGS, NULL};

/* Returns a new reference to gc.callbacks, or NULL without an exception. */
static PyObject *callbacks(void)
{
    PyObject *gc = kpti_import("gc");
    PyObject *list = gc ? PyObject_GetAttrString(gc, "callbacks") : NULL;
    Py_XDECREF(gc);
    PyErr_Clear();
    return list;
}

void kpti_gc_install(void)
{
    kpti_pending_exception pending;
    PyObject *list;
    PyObject *made;
    if (callable) return;
    pending = kpti_exception_save();
    list = callbacks();
    made = list ? PyCFunction_New(&method, NULL) : NULL;
    if (made && !callable && PyList_Append(list, made) == 0) {
        callable = made;
        made = NULL;
    }
    Py_XDECREF(made);
    Py_XDECREF(list);
    kpti_exception_restore(pending);
}

void kpti_gc_forget(void)
{
    callable = NULL;
}

void kpti_gc_remove(void)
{
    kpti_pending_exception pending;
    PyObject *list;
    PyObject *mine = callable;
    if (!mine) return;
    callable = NULL; /* the calls below may re-enter this function */
    pending = kpti_exception_save();
    list = callbacks();
    if (list) Py_XDECREF(PyObject_CallMethod(list, "remove", "O", mine));
    PyErr_Clear(); /* the program may have removed it */
    Py_XDECREF(list);
    Py_DECREF(mine);
    kpti_exception_restore(pending);
}
