#include "python_tracer/threads/idle_threads.h"

#include "core/base/platform.h"
#include "python_tracer/chunks/event_stream.h"
#include "python_tracer/frames/open_frames.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/interpreter/pending_exception.h"
#include "python_tracer/interpreter/py_string.h"
#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/thread_state.h"
#include "python_tracer/state/tracer_state.h"
#include "python_tracer/state/tracing_lock.h"
#include "python_tracer/threads/traced_thread.h"

/* Reads the name of the thread IDENT from ACTIVE, which is threading's table, or NULL if threading is not loaded.
 * Returns the thread's OS id, or 0 if unknown. */
static uint64_t threading_facts(PyObject *active, PyObject *ident, char *name, size_t size)
{
    PyObject *thread = active && PyDict_Check(active) ? PyDict_GetItem(active, ident) : NULL;
    PyObject *native;
    PyObject *text;
    unsigned long long id;
    Py_XINCREF(thread); /* reading its attributes may run Python */
    native = thread ? PyObject_GetAttrString(thread, "_native_id") : NULL;
    text = thread ? PyObject_GetAttrString(thread, "_name") : NULL;
    id = native && PyLong_Check(native) ? PyLong_AsUnsignedLongLong(native) : 0;
    name[0] = 0;
    if (text && PyUnicode_Check(text)) kpti_py_string_copy(text, name, size);
    Py_XDECREF(text);
    Py_XDECREF(native);
    Py_XDECREF(thread);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        id = 0;
    }
    return id;
}

static void record_one(kpti_tracer *tracer, uint64_t os_tid, const char *name, PyFrameObject *frame)
{
    kpti_thread *here = kpti_thread_get();
    kpti_open_stack open;
    if (!here || os_tid == here->os_tid) return;
    open = kpti_open_frames_from(frame, tracer->watch_count ? tracer->bit : 0);
    kpti_tracing_lock();
    if (tracer->bit) kpti_stream_add_idle_locked(tracer, os_tid, name, open);
    kpti_tracing_unlock();
    kpti_open_frames_free(open);
}

/* FRAMES is the result of sys._current_frames(). Returns whether the OS ids of all other threads are known. */
static int record_all(kpti_tracer *tracer, PyObject *frames, PyObject *active)
{
    const unsigned long here = PyThread_get_thread_ident();
    int all = 1;
    PyObject *ident;
    PyObject *frame;
    Py_ssize_t at = 0;
    char name[64];
    while (PyDict_Next(frames, &at, &ident, &frame)) {
        uint64_t os_tid = threading_facts(active, ident, name, sizeof name);
        if (os_tid)
            record_one(tracer, os_tid, name, (PyFrameObject *)frame);
        else if (PyLong_AsUnsignedLong(ident) != here)
            all = 0;
    }
    return all;
}

static void set_all_known(kpti_tracer *tracer)
{
    kpti_tracing_lock();
    tracer->all_known_ticks = kpti_ticks();
    kpti_tracing_unlock();
}

void kpti_idle_threads_record(kpti_tracer *tracer)
{
    kpti_pending_exception pending;
    PyObject *threading;
    PyObject *active;
    PyObject *function;
    PyObject *frames;
    if (KPTI_FREE_THREADED || tracer->only_tid) return;
    pending = kpti_exception_save();
    threading = PyDict_GetItemString(PyImport_GetModuleDict(), "threading"); /* borrowed */
    active = threading ? PyObject_GetAttrString(threading, "_active") : NULL;
    function = PySys_GetObject("_current_frames"); /* borrowed */
    frames = function ? PyObject_CallNoArgs(function) : NULL;
    if (frames && PyDict_Check(frames) && record_all(tracer, frames, active)) set_all_known(tracer);
    Py_XDECREF(frames);
    Py_XDECREF(active);
    kpti_exception_restore(pending);
}
