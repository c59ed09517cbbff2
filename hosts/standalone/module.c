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
    PyObject *value = NULL;
    if (PyErr_Occurred()) return NULL; /* a signal's handler raised while we waited */
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

/* The session as a capsule, which is its owner from now on; NULL with an exception. */
static PyObject *make_capsule(kpti_session *session)
{
    PyObject *capsule = PyCapsule_New(session, capsule_name, free_session);
    if (!capsule) kpti_session_free(session);
    return capsule;
}

static PyObject *start_with(const char *plugin, const kpti_start_args *args)
{
    kpti_session_error error;
    kpti_session *session;
    PyObject *capsule;
    PyObject *result;
    if (kpti_session_start(plugin, &args->tracer, &args->session, &session, &error) != KPT_OK)
        return raise_error(&error, NULL);
    capsule = make_capsule(session);
    if (!capsule) return NULL;
    result = Py_BuildValue("Oz", capsule, kpti_session_noop_reason(session));
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

static PyObject *opened_to_tuple(kpti_session *session)
{
    static const char *const states[] = {
        [KPTI_KPT_WHOLE] = "whole", [KPTI_KPT_CUT_OFF] = "cut off", [KPTI_KPT_DAMAGED] = "damaged"};
    const kpt_str info = kpti_session_info(session);
    PyObject *capsule = make_capsule(session);
    PyObject *result;
    if (!capsule) return NULL;
    result = Py_BuildValue("Osy#", capsule, states[kpti_session_state(session)], info.data,
                           (Py_ssize_t)info.size);
    Py_DECREF(capsule);
    return result;
}

PyDoc_STRVAR(open_doc, "open(plugin, path, recover) -> (trace, how the file ends, its info)");
static PyObject *open_trace(PyObject *module, PyObject *args)
{
    kpti_session_error error;
    kpti_session *session = NULL;
    kpt_status status;
    PyObject *plugin;
    PyObject *path;
    PyObject *given;
    int recover;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&Op", PyUnicode_FSConverter, &plugin, &given, &recover))
        return NULL;
    if (!PyUnicode_FSConverter(given, &path)) {
        Py_DECREF(plugin);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = kpti_session_open(PyBytes_AsString(plugin), PyBytes_AsString(path), recover, &session,
                               &error);
    Py_END_ALLOW_THREADS;
    Py_DECREF(plugin);
    Py_DECREF(path);
    return status == KPT_OK ? opened_to_tuple(session) : raise_error(&error, given);
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

/* A long call: the GIL is released, and taken for signals and for progress. */
typedef struct long_call {
    PyThreadState *released;
    PyObject *progress; /* called with the number of calls so far; NULL: nobody */
    int raised;
} long_call;

/* Whether a signal's handler raised. Called without the GIL, on the thread that released it. */
static int handle_signals(void *ctx)
{
    long_call *call = ctx;
    if (call->raised) return 1;
    PyEval_RestoreThread(call->released);
    call->raised = PyErr_CheckSignals() != 0;
    call->released = PyEval_SaveThread();
    return call->raised;
}

/* Likewise. What raises is told by the next wait, or at the end. */
static void tell_progress(void *ctx, uint64_t calls)
{
    long_call *call = ctx;
    PyObject *answer;
    if (!call->progress || call->raised) return;
    PyEval_RestoreThread(call->released);
    answer = PyObject_CallFunction(call->progress, "K", (unsigned long long)calls);
    if (!answer) call->raised = 1;
    Py_XDECREF(answer);
    call->released = PyEval_SaveThread();
}

static kpti_session_watch watch_of(long_call *call)
{
    return (kpti_session_watch){handle_signals, call, call->progress ? tell_progress : NULL, call};
}

static PyObject *count_to_dict(const kpti_session_count *count)
{
    return Py_BuildValue("{s:K,s:K,s:K,s:K}", "calls", (unsigned long long)count->calls, "names",
                         (unsigned long long)count->names, "threads",
                         (unsigned long long)count->threads, "bytes",
                         (unsigned long long)count->bytes);
}

PyDoc_STRVAR(write_doc, "write(trace, path, progress) -> counts; path None: counts only");
static PyObject *write_trace(PyObject *module, PyObject *args)
{
    long_call call = {NULL, NULL, 0};
    kpti_session_watch watch;
    PyObject *capsule;
    PyObject *path;
    PyObject *progress;
    PyObject *bytes = NULL;
    kpti_session *session;
    kpti_session_count count;
    kpti_session_error error;
    kpt_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOO", &capsule, &path, &progress)) return NULL;
    session = session_of(capsule);
    if (!session || (path != Py_None && !PyUnicode_FSConverter(path, &bytes))) return NULL;
    if (progress != Py_None) call.progress = progress;
    watch = watch_of(&call);
    call.released = PyEval_SaveThread();
    if (bytes)
        status = kpti_session_write(session, PyBytes_AsString(bytes), &watch, &count, &error);
    else
        status = kpti_session_count_calls(session, &count, &error);
    PyEval_RestoreThread(call.released);
    Py_XDECREF(bytes);
    if (status == KPT_OK && !call.raised) return count_to_dict(&count);
    return raise_error(&error, path);
}

PyDoc_STRVAR(note_doc, "note(trace, what, name, args, value, flow, partner) -> its number, or 0");
static PyObject *note(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    kpti_session *session;
    kpti_note made;
    unsigned long long flow;
    Py_ssize_t name_size;
    Py_ssize_t args_size;
    (void)module;
    memset(&made, 0, sizeof made);
    if (!PyArg_ParseTuple(args, "OIs#s#dKI", &capsule, &made.what, &made.name.data, &name_size,
                          &made.args.data, &args_size, &made.value, &flow, &made.partner))
        return NULL;
    session = session_of(capsule);
    if (!session) return NULL;
    made.name.size = (uint64_t)name_size;
    made.args.size = (uint64_t)args_size;
    made.flow = flow;
    return PyLong_FromUnsignedLong(kpti_session_note(session, made));
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
    kpt_status status;
    int done = 1;
    (void)module;
    if (!session) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = kpti_session_stats(session, &values, &error);
    Py_END_ALLOW_THREADS;
    if (status != KPT_OK) return raise_error(&error, NULL);
    dict = PyDict_New();
    for (int i = 0; dict && done && i < COUNTERS; i++) {
        uint64_t value;
        memcpy(&value, (const char *)&values + counters[i].offset, sizeof value);
        done = put_counter(dict, counters[i].name, value);
    }
    if (dict && !done) Py_CLEAR(dict);
    return dict;
}

/* A row as Python gets it. */
static PyObject *row_to_tuple(const kpti_profile *profile, const kpti_profile_row *row)
{
    const kpt_name *name = kpti_profile_name(profile, row->name);
    const kpt_thread *thread = kpti_profile_thread(profile, row->thread);
    return Py_BuildValue(
        "y#y#y#ky#KKKKK", name ? name->display.data : "", name ? (Py_ssize_t)name->display.size : 0,
        name ? name->function.data : "", name ? (Py_ssize_t)name->function.size : 0,
        name ? name->file.data : "", name ? (Py_ssize_t)name->file.size : 0,
        (unsigned long)(name ? name->first_line : 0), thread ? thread->name.data : "",
        thread ? (Py_ssize_t)thread->name.size : 0, (unsigned long long)row->calls,
        (unsigned long long)row->own_ns, (unsigned long long)row->total_ns,
        (unsigned long long)row->min_ns, (unsigned long long)row->max_ns);
}

static PyObject *rows_to_list(kpti_profile *profile, int sort, unsigned most)
{
    uint32_t count;
    const kpti_profile_row *rows = kpti_profile_rows(profile, (kpti_profile_sort)sort, &count);
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < count && i < most; i++) {
        PyObject *row = row_to_tuple(profile, &rows[i]);
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

PyDoc_STRVAR(profile_doc, "profile(trace, sort, most, by_thread, progress) -> rows by function");
static PyObject *profile(PyObject *module, PyObject *args)
{
    static const kpti_heap heap = {NULL, NULL, NULL};
    long_call call = {NULL, NULL, 0};
    kpti_session_watch watch;
    PyObject *capsule;
    PyObject *progress;
    PyObject *list = NULL;
    kpti_session *session;
    kpti_profile *made;
    kpti_session_error error;
    kpt_status status;
    unsigned most;
    int sort;
    int by_thread;
    (void)module;
    if (!PyArg_ParseTuple(args, "OiIpO", &capsule, &sort, &most, &by_thread, &progress))
        return NULL;
    session = session_of(capsule);
    if (!session) return NULL;
    if (progress != Py_None) call.progress = progress;
    if (kpti_profile_open(&heap, by_thread ? KPTI_PROFILE_BY_THREAD : 0, &made) != KPT_OK)
        return PyErr_NoMemory();
    watch = watch_of(&call);
    call.released = PyEval_SaveThread();
    status = kpti_session_profile(session, &watch, made, &error);
    PyEval_RestoreThread(call.released);
    if (status == KPT_OK && !call.raised)
        list = rows_to_list(made, sort, most);
    else
        (void)raise_error(&error, NULL);
    kpti_profile_free(made);
    return list;
}

PyDoc_STRVAR(formats_doc, "formats() -> (name, suffix) of each format that is written");
static PyObject *formats(PyObject *module, PyObject *ignored)
{
    size_t count;
    const kpti_format *const *all = kpti_formats(&count);
    PyObject *list = PyList_New(0);
    (void)module;
    (void)ignored;
    for (size_t i = 0; list && i < count; i++) {
        PyObject *pair = Py_BuildValue("ss", all[i]->name, all[i]->suffix);
        if (!pair || PyList_Append(list, pair) < 0) Py_CLEAR(list);
        Py_XDECREF(pair);
    }
    return list;
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
    {"start", start, METH_VARARGS, start_doc},
    {"open", open_trace, METH_VARARGS, open_doc},
    {"stop", stop, METH_O, stop_doc},
    {"write", write_trace, METH_VARARGS, write_doc},
    {"note", note, METH_VARARGS, note_doc},
    {"stats", stats, METH_O, stats_doc},
    {"profile", profile, METH_VARARGS, profile_doc},
    {"formats", formats, METH_NOARGS, formats_doc},
    {"close", close_trace, METH_O, close_doc},
    {NULL, NULL, 0, NULL},
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
