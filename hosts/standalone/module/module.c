/* module.c: kpytrace._standalone: the embedded host as a Python module. Users call the package in
 * package/kpytrace/. This module translates values, errors and the GIL, and checks its arguments, but does not
 * explain errors.
 *
 * A trace is a capsule around a kpti_session, which is freed with it. The GIL is held in start, since a tracer
 * needs it, and released in all other long calls. Built with the limited API if there is one, so that one
 * module serves every CPython from 3.10 on. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hosts/standalone/background/sigterm_flush.h"
#include "hosts/standalone/module/options.h"
#include "hosts/standalone/module/py_import.h"
#include "hosts/standalone/module/py_memory.h"
#include "hosts/standalone/module/py_merge.h"
#include "hosts/standalone/module/py_recover.h"
#include "hosts/standalone/module/py_tracer.h"
#include "hosts/standalone/module/py_triggers.h"
#include "hosts/standalone/module/queries/py_columns.h"
#include "hosts/standalone/module/queries/py_edges.h"
#include "hosts/standalone/module/queries/py_findings.h"
#include "hosts/standalone/module/queries/py_gpu.h"
#include "hosts/standalone/module/queries/py_operators.h"
#include "hosts/standalone/module/queries/py_profile.h"
#include "hosts/standalone/module/queries/py_steps.h"
#include "hosts/standalone/module/queries/py_tasks.h"
#include "hosts/standalone/module/support/py_support.h"
#include "hosts/standalone/module/traceback/py_tracebacks.h"
#include "hosts/standalone/module/traceback/traceback_type.h"
#include "hosts/standalone/session/session.h"
#include "hosts/standalone/session/session_background.h"
#include "hosts/standalone/session/session_export.h"
#include "hosts/standalone/session/session_notes.h"
#include "hosts/standalone/session/session_queries.h"
#include "writers/report/report_page.h"

/* --- the functions ---------------------------------------------------------------------------- */

static void free_session(PyObject *capsule)
{
    PyObject *callbacks = PyCapsule_GetContext(capsule);
    kpti_session_free(PyCapsule_GetPointer(capsule, kpti_capsule_name));
    Py_XDECREF(callbacks); /* the session has called them until now */
}

/* Returns a capsule that owns the session, or NULL with an exception. */
static PyObject *make_capsule(kpti_session *session)
{
    PyObject *capsule = PyCapsule_New(session, kpti_capsule_name, free_session);
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
        return kpti_raise(&error, NULL);
    capsule = make_capsule(session);
    if (!capsule) return NULL;
    Py_XINCREF(args->callbacks);
    (void)PyCapsule_SetContext(capsule, args->callbacks);
    result = Py_BuildValue("OzzI", capsule, kpti_session_noop_reason(session),
                           kpti_session_gpu_reason(session), kpti_session_recorded_gpu(session));
    Py_DECREF(capsule);
    return result;
}

PyDoc_STRVAR(
    start_doc,
    "start(plugin, options) -> (trace, reason why nothing is recorded or None, "
    "reason why GPUs are not recorded or None, how they are: 0 not, 1, 3 nearly all calls)");
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
    const kpt_str info = kpti_session_info(session);
    PyObject *capsule = make_capsule(session);
    PyObject *result;
    if (!capsule) return NULL;
    result = Py_BuildValue("Osy#", capsule, kpti_kpt_state_name(kpti_session_state(session)),
                           info.data, (Py_ssize_t)info.size);
    Py_DECREF(capsule);
    return result;
}

PyDoc_STRVAR(open_doc, "open(plugin, path, recover) -> (trace, state of the file's end, its info)");
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
    return status == KPT_OK ? opened_to_tuple(session) : kpti_raise(&error, given);
}

PyDoc_STRVAR(stop_doc, "stop(trace): ends recording");
static PyObject *stop(PyObject *module, PyObject *capsule)
{
    kpti_session_error error;
    kpt_status status;
    kpti_session *session = kpti_session_of(capsule);
    (void)module;
    if (!session) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = kpti_session_stop(session, &error);
    Py_END_ALLOW_THREADS;
    if (status != KPT_OK) return kpti_raise(&error, NULL);
    return Py_NewRef(Py_None);
}

PyDoc_STRVAR(is_recording_doc, "is_recording(trace) -> True if it records in this process");
static PyObject *is_recording(PyObject *module, PyObject *capsule)
{
    const kpti_session *session = kpti_session_of(capsule);
    (void)module;
    return session ? PyBool_FromLong(kpti_session_is_recording(session)) : NULL;
}

PyDoc_STRVAR(write_doc, "write(trace, path, progress) -> counts; path None: counts only");
static PyObject *write_trace(PyObject *module, PyObject *args)
{
    kpti_long_call call = {NULL, NULL, 0};
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
    session = kpti_session_of(capsule);
    if (!session || (path != Py_None && !PyUnicode_FSConverter(path, &bytes))) return NULL;
    if (progress != Py_None) call.progress = progress;
    watch = kpti_watch_of(&call);
    call.released = PyEval_SaveThread();
    if (bytes)
        status = kpti_session_write(session, PyBytes_AsString(bytes), &watch, &count, &error);
    else
        status = kpti_session_count_calls(session, &count, &error);
    PyEval_RestoreThread(call.released);
    Py_XDECREF(bytes);
    if (status == KPT_OK && !call.raised) return kpti_count_to_dict(&count);
    return kpti_raise(&error, path);
}

PyDoc_STRVAR(next_dump_doc, "next_dump(trace, path) -> the path with the next number in it");
static PyObject *next_dump(PyObject *module, PyObject *args)
{
    char numbered[PATH_MAX];
    const char *path;
    PyObject *capsule;
    kpti_session *session;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oy", &capsule, &path)) return NULL;
    session = kpti_session_of(capsule);
    if (!session) return NULL;
    kpti_session_number_path(session, path, numbered, sizeof numbered);
    return PyBytes_FromString(numbered);
}

PyDoc_STRVAR(note_doc, "note(trace, what, name, args, value, flow, partner) -> the note's number, "
                       "or 0 if it was not recorded");
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
    session = kpti_session_of(capsule);
    if (!session) return NULL;
    made.name.size = (uint64_t)name_size;
    made.args.size = (uint64_t)args_size;
    made.flow = flow;
    return PyLong_FromUnsignedLong(kpti_session_note(session, made));
}

PyDoc_STRVAR(set_info_doc, "set_info(trace, lines): sets the information about the program");
static PyObject *set_info(PyObject *module, PyObject *args)
{
    kpti_session_error error;
    PyObject *capsule;
    kpti_session *session;
    const char *lines;
    Py_ssize_t size;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oy#", &capsule, &lines, &size)) return NULL;
    session = kpti_session_of(capsule);
    if (!session) return NULL;
    if (kpti_session_set_info(session, (kpt_str){lines, (uint64_t)size}, &error) != KPT_OK)
        return kpti_raise(&error, NULL);
    return Py_NewRef(Py_None);
}

PyDoc_STRVAR(listen_doc, "listen(): handles SIGTERM after the program removed its handler");
static PyObject *listen_again(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    Py_BEGIN_ALLOW_THREADS;
    kpti_sigterm_flush_listen();
    Py_END_ALLOW_THREADS;
    return Py_NewRef(Py_None);
}

PyDoc_STRVAR(close_doc, "close(trace): frees the recording");
static PyObject *close_trace(PyObject *module, PyObject *capsule)
{
    kpti_session_error error;
    kpt_status status;
    kpti_session *session = kpti_session_of(capsule);
    (void)module;
    if (!session) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = kpti_session_close(session, &error);
    Py_END_ALLOW_THREADS;
    if (status != KPT_OK) return kpti_raise(&error, NULL);
    return Py_NewRef(Py_None);
}

PyDoc_STRVAR(report_page_doc,
             "report_page() -> the page of a report, to which sections are appended");
static PyObject *report_page(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    return PyBytes_FromStringAndSize((const char *)kpti_report_page,
                                     (Py_ssize_t)kpti_report_page_bytes);
}

static PyMethodDef methods[] = {
    {"start", start, METH_VARARGS, start_doc},
    {"open", open_trace, METH_VARARGS, open_doc},
    {"stop", stop, METH_O, stop_doc},
    {"is_recording", is_recording, METH_O, is_recording_doc},
    {"write", write_trace, METH_VARARGS, write_doc},
    {"next_dump", next_dump, METH_VARARGS, next_dump_doc},
    {"step", kpti_step_call, METH_VARARGS, kpti_step_doc},
    {"ask_dump", kpti_ask_dump_call, METH_VARARGS, kpti_ask_dump_doc},
    {"own_dumps", kpti_own_dumps_call, METH_O, kpti_own_dumps_doc},
    {"note", note, METH_VARARGS, note_doc},
    {"set_info", set_info, METH_VARARGS, set_info_doc},
    {"stats", kpti_stats_call, METH_O, kpti_stats_doc},
    {"tracer", kpti_tracer_call, METH_O, kpti_tracer_doc},
    {"gpu", kpti_gpu_call, METH_O, kpti_gpu_doc},
    {"gpu_log", kpti_gpu_log_call, METH_O, kpti_gpu_log_doc},
    {"gpu_report", kpti_gpu_report_call, METH_O, kpti_gpu_report_doc},
    {"profile", kpti_profile_call, METH_VARARGS, kpti_profile_doc},
    {"explain", kpti_explain_call, METH_VARARGS, kpti_explain_doc},
    {"thread_sums", kpti_thread_sums_call, METH_VARARGS, kpti_thread_sums_doc},
    {"operators", kpti_operators_call, METH_VARARGS, kpti_operators_doc},
    {"steps", kpti_steps_call, METH_O, kpti_steps_doc},
    {"edges", kpti_edges_call, METH_VARARGS, kpti_edges_doc},
    {"columns", kpti_columns_call, METH_VARARGS, kpti_columns_doc},
    {"tasks", kpti_tasks_call, METH_VARARGS, kpti_tasks_doc},
    {"skipped", kpti_skipped_call, METH_O, kpti_skipped_doc},
    {"no_compress", kpti_no_compress_call, METH_O, kpti_no_compress_doc},
    {"compact", kpti_compact_call, METH_O, kpti_compact_doc},
    {"recover", kpti_recover_call, METH_VARARGS, kpti_recover_doc},
    {"report_page", report_page, METH_NOARGS, report_page_doc},
    {"listen", listen_again, METH_NOARGS, listen_doc},
    {"close", close_trace, METH_O, close_doc},
    {NULL, NULL, 0, NULL},
};

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    const kpti_module_state *state = PyModule_GetState(module);
    Py_VISIT(state->traceback_type);
    Py_VISIT(state->generated);
    return 0;
}

static int clear(PyObject *module)
{
    kpti_module_state *state = PyModule_GetState(module);
    kpti_free_spares(state); /* they are freed through their type */
    Py_CLEAR(state->traceback_type);
    Py_CLEAR(state->generated);
    for (int i = 0; i < KPTI_KEYS; i++)
        Py_CLEAR(state->keys[i]);
    for (int i = 0; i < KPTI_KINDS; i++)
        Py_CLEAR(state->kinds[i]);
    return 0;
}

static void free_module(void *module)
{
    (void)clear(module);
}

static int add_methods(PyObject *module)
{
    return PyModule_AddFunctions(module, kpti_memory_methods) < 0 ||
                   PyModule_AddFunctions(module, kpti_merge_methods) < 0 ||
                   PyModule_AddFunctions(module, kpti_import_methods) < 0
               ? -1
               : 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)kpti_add_tracebacks},
    {Py_mod_exec, (void *)add_methods},
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "kpytrace._standalone",
    .m_doc = "The embedded host of kpytrace. Use the package's own functions.",
    .m_size = sizeof(kpti_module_state),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = free_module,
};

PyMODINIT_FUNC PyInit__standalone(void);

PyMODINIT_FUNC PyInit__standalone(void)
{
    return PyModuleDef_Init(&definition);
}
