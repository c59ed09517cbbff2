/* module.c: kpytrace._standalone: the embedded host as a Python module. The package in kpytrace/ is
 * what people call; this translates values, errors and the GIL, and checks what it is given, but
 * explains nothing.
 *
 * A trace is a capsule around a kpti_session, freed with it. The GIL is held in start, as a tracer
 * wants it, and released in all else that takes time. Built with the limited API where there is
 * one, so that one module serves every CPython from 3.10 on. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "host.h"
#include "options.h"

static const char capsule_name[] = "kpytrace._standalone.trace";

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
    default:
        return PyExc_RuntimeError;
    }
}

/* Sets the exception that tells ERROR; PATH is the file's name, where there is one. */
static PyObject *raise_error(const kpti_session_error *error, PyObject *path)
{
    PyObject *text;
    if (PyErr_Occurred()) return NULL; /* a signal's handler raised while we waited */
    if (error->os_error) {
        errno = error->os_error;
        return PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
    }
    text = PyUnicode_DecodeUTF8(error->text, (Py_ssize_t)strlen(error->text), "replace");
    if (text) PyErr_SetObject(exception_for(error->status), text);
    Py_XDECREF(text);
    return NULL;
}

/* --- the functions ---------------------------------------------------------------------------- */

static void free_session(PyObject *capsule)
{
    kpti_session_free(PyCapsule_GetPointer(capsule, capsule_name));
}

static kpti_session *session_of(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, capsule_name))
        return PyCapsule_GetPointer(capsule, capsule_name);
    PyErr_SetString(PyExc_TypeError, "this is no trace of kpytrace._standalone");
    return NULL;
}

static PyObject *start_with(const char *plugin, const kpti_start_args *args)
{
    kpti_session_error error;
    kpti_session *session;
    const char *reason;
    PyObject *capsule;
    PyObject *result;
    if (kpti_session_start(plugin, &args->tracer, args->session_flags, &session, &error) != KPT_OK)
        return raise_error(&error, NULL);
    capsule = PyCapsule_New(session, capsule_name, free_session);
    if (!capsule) {
        kpti_session_free(session);
        return NULL;
    }
    reason = kpti_session_noop_reason(session);
    result = Py_BuildValue("Oz", capsule, reason);
    Py_DECREF(capsule);
    return result;
}

PyDoc_STRVAR(start_doc, "start(plugin, options) -> (trace, why it records nothing, or None)");
static PyObject *start(PyObject *module, PyObject *args)
{
    PyObject *plugin;
    PyObject *options;
    PyObject *result = NULL;
    kpti_start_args wanted;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&O!", PyUnicode_FSConverter, &plugin, &PyDict_Type, &options))
        return NULL;
    if (kpti_options_read(options, &wanted)) result = start_with(PyBytes_AsString(plugin), &wanted);
    kpti_options_free(&wanted);
    Py_DECREF(plugin);
    return result;
}

PyDoc_STRVAR(stop_doc, "stop(trace): ends recording");
static PyObject *stop(PyObject *module, PyObject *capsule)
{
    kpti_session_error error;
    kpt_status status;
    kpti_session *session = session_of(capsule);
    (void)module;
    if (!session) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = kpti_session_stop(session, &error);
    Py_END_ALLOW_THREADS;
    if (status != KPT_OK) return raise_error(&error, NULL);
    return Py_NewRef(Py_None);
}

/* Whether a signal's handler raised. Called without the GIL, on the thread that released it. */
static int handle_signals(void *ctx)
{
    PyThreadState **released = ctx;
    int raised;
    PyEval_RestoreThread(*released);
    raised = PyErr_CheckSignals() != 0;
    *released = PyEval_SaveThread();
    return raised;
}

static PyObject *count_to_dict(const kpti_session_count *count)
{
    return Py_BuildValue("{s:K,s:K,s:K,s:K}", "calls", (unsigned long long)count->calls, "names",
                         (unsigned long long)count->names, "threads",
                         (unsigned long long)count->threads, "bytes",
                         (unsigned long long)count->bytes);
}

PyDoc_STRVAR(write_doc, "write(trace, path) -> counts; path None: counts only");
static PyObject *write_trace(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    PyObject *path;
    PyObject *bytes = NULL;
    PyThreadState *released;
    kpti_session *session;
    kpti_session_count count;
    kpti_session_error error;
    kpt_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &capsule, &path)) return NULL;
    session = session_of(capsule);
    if (!session || (path != Py_None && !PyUnicode_FSConverter(path, &bytes))) return NULL;
    released = PyEval_SaveThread();
    if (bytes)
        status = kpti_session_write(session, PyBytes_AsString(bytes), handle_signals, &released,
                                    &count, &error);
    else
        status = kpti_session_count_calls(session, &count, &error);
    PyEval_RestoreThread(released);
    Py_XDECREF(bytes);
    return status == KPT_OK ? count_to_dict(&count) : raise_error(&error, path);
}

/* One row for each counter of kpt_stats. */
static const struct counter {
    const char *name;
    size_t offset;
} counters[] = {
    {"events", offsetof(kpt_stats, events)},
    {"bytes_held", offsetof(kpt_stats, bytes_held)},
    {"events_dropped", offsetof(kpt_stats, events_dropped)},
    {"events_repaired", offsetof(kpt_stats, events_repaired)},
    {"events_filtered", offsetof(kpt_stats, events_filtered)},
    {"chunks_sealed", offsetof(kpt_stats, chunks_sealed)},
    {"chunks_refused", offsetof(kpt_stats, chunks_refused)},
    {"threads", offsetof(kpt_stats, threads)},
    {"threads_unreached", offsetof(kpt_stats, threads_unreached)},
    {"functions_disabled", offsetof(kpt_stats, functions_disabled)},
};
enum { COUNTERS = sizeof counters / sizeof counters[0] };

static int put_counter(PyObject *dict, const char *name, uint64_t value)
{
    PyObject *number = PyLong_FromUnsignedLongLong(value);
    int done = number && PyDict_SetItemString(dict, name, number) == 0;
    Py_XDECREF(number);
    return done;
}

PyDoc_STRVAR(stats_doc, "stats(trace) -> the tracer's counters");
static PyObject *stats(PyObject *module, PyObject *capsule)
{
    kpti_session_error error;
    kpt_stats values;
    kpti_session *session = session_of(capsule);
    PyObject *dict;
    int done = 1;
    (void)module;
    if (!session) return NULL;
    if (kpti_session_stats(session, &values, &error) != KPT_OK) return raise_error(&error, NULL);
    dict = PyDict_New();
    for (int i = 0; dict && done && i < COUNTERS; i++) {
        uint64_t value;
        memcpy(&value, (const char *)&values + counters[i].offset, sizeof value);
        done = put_counter(dict, counters[i].name, value);
    }
    if (dict && !done) Py_CLEAR(dict);
    return dict;
}

PyDoc_STRVAR(close_doc, "close(trace): frees the recording");
static PyObject *close_trace(PyObject *module, PyObject *capsule)
{
    kpti_session_error error;
    kpt_status status;
    kpti_session *session = session_of(capsule);
    (void)module;
    if (!session) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = kpti_session_close(session, &error);
    Py_END_ALLOW_THREADS;
    if (status != KPT_OK) return raise_error(&error, NULL);
    return Py_NewRef(Py_None);
}

static PyMethodDef methods[] = {
    {"start", start, METH_VARARGS, start_doc},       {"stop", stop, METH_O, stop_doc},
    {"write", write_trace, METH_VARARGS, write_doc}, {"stats", stats, METH_O, stats_doc},
    {"close", close_trace, METH_O, close_doc},       {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "kpytrace._standalone",
    .m_doc = "The embedded host of kpytrace. Use the package's own functions.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__standalone(void);

PyMODINIT_FUNC PyInit__standalone(void)
{
    return PyModuleDef_Init(&definition);
}
