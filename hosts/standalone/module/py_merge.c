#include "hosts/standalone/module/py_merge.h"

#include "hosts/standalone/module/support/py_support.h"
#include "hosts/standalone/session/merge_recordings.h"

static const char merge_name[] = "kpytrace._standalone.merge";

/* A merge that was not ended leaves no file. */
static void free_merge(PyObject *capsule)
{
    kpti_session_count ignored;
    kpti_session_error error;
    (void)kpti_merge_close(PyCapsule_GetPointer(capsule, merge_name), 0, &ignored, &error);
}

static PyObject *merge_open(PyObject *module, PyObject *args)
{
    kpti_session_error error;
    kpti_merge *merge;
    PyObject *path;
    PyObject *capsule = NULL;
    long long base_ns;
    (void)module;
    if (!PyArg_ParseTuple(args, "O&L", PyUnicode_FSConverter, &path, &base_ns)) return NULL;
    if (kpti_merge_open(PyBytes_AsString(path), base_ns, &merge, &error) != KPT_OK) {
        (void)kpti_raise(&error, NULL);
    } else {
        capsule = PyCapsule_New(merge, merge_name, free_merge);
        if (!capsule) (void)kpti_merge_close(merge, 0, &(kpti_session_count){0}, &error);
    }
    Py_DECREF(path);
    return capsule;
}

static PyObject *merge_add(PyObject *module, PyObject *args)
{
    kpti_long_call call = {NULL, NULL, 0};
    kpti_session_watch watch;
    kpti_session_error error;
    kpti_merge_part part;
    kpti_merge *merge;
    kpti_session *session;
    PyObject *capsule;
    PyObject *trace;
    PyObject *progress;
    Py_ssize_t name_size;
    Py_ssize_t label_size;
    long long offset_ns;
    long long anchor_ns;
    kpt_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOIs#s#LLdO", &capsule, &trace, &part.pid, &part.name.data,
                          &name_size, &part.label.data, &label_size, &offset_ns, &anchor_ns,
                          &part.clock.drift, &progress))
        return NULL;
    merge = PyCapsule_GetPointer(capsule, merge_name);
    session = merge ? kpti_session_of(trace) : NULL;
    if (!session) return NULL;
    part.name.size = (uint64_t)name_size;
    part.label.size = (uint64_t)label_size;
    part.clock.offset_ns = offset_ns;
    part.clock.anchor_ns = anchor_ns;
    if (progress != Py_None) call.progress = progress;
    watch = kpti_watch_of(&call);
    call.released = PyEval_SaveThread();
    status = kpti_merge_add(merge, session, &part, &watch, &error);
    PyEval_RestoreThread(call.released);
    if (status == KPT_OK && !call.raised) return Py_NewRef(Py_None);
    return kpti_raise(&error, NULL);
}

/* The capsule no longer owns the merge. */
static PyObject *merge_end(PyObject *module, PyObject *capsule)
{
    kpti_session_count count;
    kpti_session_error error;
    kpt_status status;
    kpti_merge *merge = PyCapsule_GetPointer(capsule, merge_name);
    (void)module;
    if (!merge || PyCapsule_SetDestructor(capsule, NULL) < 0 ||
        PyCapsule_SetName(capsule, "kpytrace._standalone.ended") < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = kpti_merge_close(merge, 1, &count, &error);
    Py_END_ALLOW_THREADS;
    return status == KPT_OK ? kpti_count_to_dict(&count) : kpti_raise(&error, NULL);
}

PyMethodDef kpti_merge_methods[] = {
    {"merge_open", merge_open, METH_VARARGS, "merge_open(path, base_ns) -> merge"},
    {"merge_add", merge_add, METH_VARARGS,
     "merge_add(merge, trace, pid, name, label, offset_ns, anchor_ns, drift, progress)"},
    {"merge_end", merge_end, METH_O, "merge_end(merge) -> counts; completes the file"},
    {NULL, NULL, 0, NULL},
};
