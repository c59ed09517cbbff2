/* module.c: kpytrace.torch._exporter: the exporter as a Python module. It translates values and errors, and
 * releases the GIL in all long calls. The package in package/kpytrace/torch explains errors to users. Built
 * with the limited API, so that one module serves every CPython from 3.10 on. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hosts/torch/exporter/events/py_table.h"
#include "hosts/torch/exporter/py_exporter.h"

PyDoc_STRVAR(
    trace_doc,
    "write_trace(recording or None, source, target, gzip, verbose, kernel_stacks) -> calls");
static PyObject *write_trace(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    PyObject *names[2];
    PyObject *paths[2] = {NULL, NULL};
    int gzip;
    int verbose;
    int stacks;
    const kpti_torch_recording *recording;
    kpti_export_result result;
    kpt_status status = KPT_OK;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOppp", &capsule, &names[0], &names[1], &gzip, &verbose,
                          &stacks) ||
        !kpti_recording_of(capsule, &recording) || !PyUnicode_FSConverter(names[0], &paths[0]))
        return NULL;
    if (PyUnicode_FSConverter(names[1], &paths[1])) {
        uint32_t flags = (gzip ? (uint32_t)KPTI_EXPORT_GZIP : 0) |
                         (stacks ? (uint32_t)KPTI_EXPORT_STACKS : 0) |
                         (verbose ? (uint32_t)KPTI_CALLS_VERBOSE : 0);
        const char *source = PyBytes_AsString(paths[0]);
        const char *target = PyBytes_AsString(paths[1]);
        Py_BEGIN_ALLOW_THREADS;
        status = kpti_export_trace(recording, source, target, flags, &result);
        Py_END_ALLOW_THREADS;
        if (status != KPT_OK) (void)kpti_raise_export(status, &result, names[0], names[1]);
    }
    Py_XDECREF(paths[0]);
    Py_XDECREF(paths[1]);
    return PyErr_Occurred() ? NULL : PyLong_FromUnsignedLongLong(result.calls);
}

PyDoc_STRVAR(list_doc, "write_list(recording, target, base_ns, of_list, verbose) -> calls");
static PyObject *write_list(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    PyObject *name;
    PyObject *path;
    long long base_ns;
    int of_list;
    int verbose;
    const kpti_torch_recording *recording;
    const char *target;
    uint32_t flags;
    kpti_export_result result;
    kpt_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOLpp", &capsule, &name, &base_ns, &of_list, &verbose) ||
        !kpti_recording_of(capsule, &recording) || !PyUnicode_FSConverter(name, &path))
        return NULL;
    flags =
        (of_list ? (uint32_t)KPTI_CALLS_OF_LIST : 0) | (verbose ? (uint32_t)KPTI_CALLS_VERBOSE : 0);
    target = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS;
    status = kpti_export_list(recording, target, base_ns, flags, &result);
    Py_END_ALLOW_THREADS;
    Py_DECREF(path);
    if (status != KPT_OK) return kpti_raise_export(status, &result, name, name);
    return PyLong_FromUnsignedLongLong(result.calls);
}

static PyMethodDef methods[] = {
    {"write_trace", write_trace, METH_VARARGS, trace_doc},
    {"write_list", write_list, METH_VARARGS, list_doc},
    {"write_native", kpti_write_native, METH_VARARGS, kpti_write_native_doc},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{Py_mod_exec, kpti_py_table_add}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "kpytrace.torch._exporter",
    .m_doc = "Writes recordings into torch's traces. Use the package's own functions.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__exporter(void);

PyMODINIT_FUNC PyInit__exporter(void)
{
    return PyModuleDef_Init(&definition);
}
