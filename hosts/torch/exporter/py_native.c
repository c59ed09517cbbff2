#include "hosts/torch/exporter/native_trace.h"
#include "hosts/torch/exporter/py_exporter.h"

/* Called on the writing thread while it waits for the reader of a pipe. CTX is its state. */
static int is_interrupted(void *ctx)
{
    PyThreadState **const released = ctx;
    int raised;
    PyEval_RestoreThread(*released);
    raised = PyErr_CheckSignals() != 0;
    *released = PyEval_SaveThread();
    return raised;
}

const char kpti_write_native_doc[] = "write_native(recording, GPU log or None, target, members of "
                                     "the head, base_ns, begin_ns, gzip, "
                                     "kernel_stacks) -> calls";

PyObject *kpti_write_native(PyObject *module, PyObject *args)
{
    PyObject *recording;
    PyObject *log;
    PyObject *name;
    PyObject *path;
    Py_ssize_t member_bytes;
    long long base_ns;
    long long begin_ns;
    int gzip;
    int stacks;
    kpti_native_profile profile;
    kpti_export_result result;
    kpt_status status;
    PyThreadState *released;
    (void)module;
    memset(&profile, 0, sizeof profile);
    if (!PyArg_ParseTuple(args, "OOOy#LLpp", &recording, &log, &name, &profile.members.data,
                          &member_bytes, &base_ns, &begin_ns, &gzip, &stacks) ||
        !kpti_recording_of(recording, &profile.recording) || !kpti_gpu_log_of(log, &profile.gpu))
        return NULL;
    if (!profile.recording) {
        PyErr_SetString(PyExc_TypeError, "there is no recording");
        return NULL;
    }
    if (!PyUnicode_FSConverter(name, &path)) return NULL;
    profile.members.size = (uint64_t)member_bytes;
    profile.base_ns = base_ns;
    profile.begin_ns = begin_ns;
    profile.interrupted = is_interrupted;
    profile.interrupted_ctx = &released;
    released = PyEval_SaveThread();
    status = kpti_native_write(&profile, PyBytes_AsString(path),
                               (gzip ? (uint32_t)KPTI_EXPORT_GZIP : 0) |
                                   (stacks ? (uint32_t)KPTI_EXPORT_STACKS : 0),
                               &result);
    PyEval_RestoreThread(released);
    Py_DECREF(path);
    if (status != KPT_OK) return kpti_raise_export(status, &result, name, name);
    return PyLong_FromUnsignedLongLong(result.calls);
}
