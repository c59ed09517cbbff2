#include "hosts/standalone/module/support/py_support.h"

const char kpti_capsule_name[] = "kpytrace._standalone.trace";

/* --- errors ----------------------------------------------------------------------------------- */

static PyObject *exception_for(kpt_status status)
{
    switch (status) {
    case KPT_E_INVALID:
    case KPT_E_UNSUPPORTED:
    case KPT_E_SIZE:
        return PyExc_ValueError;
    case KPT_E_MEMORY:
        return PyExc_MemoryError;
    case KPT_E_IO:
        return PyExc_OSError;
    default:
        return PyExc_RuntimeError;
    }
}

PyObject *kpti_raise(const kpti_session_error *error, PyObject *path)
{
    PyObject *text;
    PyObject *value = NULL;
    if (PyErr_Occurred()) return NULL; /* a signal handler raised during the wait */
    if (error->os_error && path) {
        errno = error->os_error;
        return PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
    }
    text = PyUnicode_DecodeUTF8(error->text, (Py_ssize_t)strlen(error->text), "replace");
    if (text && error->os_error)
        value = Py_BuildValue("iO", error->os_error, text);
    else if (text)
        value = Py_NewRef(text);
    if (value)
        PyErr_SetObject(error->os_error ? PyExc_OSError : exception_for(error->status), value);
    Py_XDECREF(value);
    Py_XDECREF(text);
    return NULL;
}

kpti_session *kpti_session_of(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, kpti_capsule_name))
        return PyCapsule_GetPointer(capsule, kpti_capsule_name);
    PyErr_SetString(PyExc_TypeError, "this is not a trace of kpytrace._standalone");
    return NULL;
}

/* --- long calls ------------------------------------------------------------------------------- */

/* Returns 1 if a signal handler raised. Called without the GIL, on the thread that released it. */
static int handle_signals(void *ctx)
{
    kpti_long_call *call = ctx;
    if (call->raised) return 1;
    PyEval_RestoreThread(call->released);
    call->raised = PyErr_CheckSignals() != 0;
    call->released = PyEval_SaveThread();
    return call->raised;
}

/* Called in the same way. If the callback raises, the next wait or the end reports the exception. */
static void tell_progress(void *ctx, uint64_t calls)
{
    kpti_long_call *call = ctx;
    PyObject *answer;
    if (!call->progress || call->raised) return;
    PyEval_RestoreThread(call->released);
    answer = PyObject_CallFunction(call->progress, "K", (unsigned long long)calls);
    if (!answer) call->raised = 1;
    Py_XDECREF(answer);
    call->released = PyEval_SaveThread();
}

kpti_session_watch kpti_watch_of(kpti_long_call *call)
{
    return (kpti_session_watch){handle_signals, call, call->progress ? tell_progress : NULL, call};
}

/* --- results ---------------------------------------------------------------------------------- */

static PyObject *rows_to_list(const void *table, uint32_t begin, uint32_t end, kpti_row_fn make)
{
    PyObject *list = PyList_New(0);
    for (uint32_t i = begin; list && i < end; i++) {
        PyObject *row = make(table, i);
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

PyObject *kpti_rows_to_lists(const void *table, uint32_t count, kpti_row_fn make, PyObject *take)
{
    enum { ROWS_AT_ONCE = 1 << 12 };
    if (take == Py_None) return rows_to_list(table, 0, count, make);
    for (uint32_t begin = 0, end; begin < count; begin = end) {
        PyObject *list;
        PyObject *answer;
        end = count - begin > ROWS_AT_ONCE ? begin + ROWS_AT_ONCE : count;
        list = rows_to_list(table, begin, end, make);
        answer = list ? PyObject_CallFunctionObjArgs(take, list, NULL) : NULL;
        Py_XDECREF(list);
        if (!answer) return NULL;
        Py_DECREF(answer);
    }
    return Py_NewRef(Py_None);
}

PyObject *kpti_count_to_dict(const kpti_session_count *count)
{
    return Py_BuildValue("{s:K,s:K,s:K,s:K}", "calls", (unsigned long long)count->calls, "names",
                         (unsigned long long)count->names, "threads",
                         (unsigned long long)count->threads, "bytes",
                         (unsigned long long)count->bytes);
}
