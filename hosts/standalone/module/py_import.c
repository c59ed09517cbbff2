#include "hosts/standalone/module/py_import.h"

#include "hosts/standalone/module/support/py_support.h"
#include "imports/chrome_import.h"

static const char import_name[] = "kpytrace._standalone.import";

static void free_import(PyObject *capsule)
{
    kpti_chrome_import_free(PyCapsule_GetPointer(capsule, import_name));
}

static PyObject *import_open(PyObject *module, PyObject *unused)
{
    kpti_chrome_import *import = kpti_chrome_import_open();
    PyObject *capsule = import ? PyCapsule_New(import, import_name, free_import) : NULL;
    (void)module;
    (void)unused;
    if (!import) return PyErr_NoMemory();
    if (!capsule) kpti_chrome_import_free(import);
    return capsule;
}

static PyObject *fail(kpt_status status)
{
    if (status == KPT_E_MEMORY) return PyErr_NoMemory();
    PyErr_SetString(PyExc_ValueError, "the trace has more names or calls than a recording can "
                                      "hold, or times that are more than 70 years apart");
    return NULL;
}

static PyObject *import_feed(PyObject *module, PyObject *args)
{
    kpti_chrome_import *import;
    PyObject *capsule;
    PyObject *bytes; /* immutable: it is read without the GIL */
    kpt_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "OS", &capsule, &bytes)) return NULL;
    import = PyCapsule_GetPointer(capsule, import_name);
    if (!import) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status =
        kpti_chrome_import_feed(import, PyBytes_AsString(bytes), (uint64_t)PyBytes_Size(bytes));
    Py_END_ALLOW_THREADS;
    if (status != KPT_OK && status != KPT_DECLINED) return fail(status);
    return PyBool_FromLong(status == KPT_OK);
}

static PyObject *import_end(PyObject *module, PyObject *capsule)
{
    kpti_chrome_import *import = PyCapsule_GetPointer(capsule, import_name);
    kpti_chrome_import_result r;
    (void)module;
    if (!import) return NULL;
    kpti_chrome_import_end(import, &r);
    return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:N,s:N}", "events", (unsigned long long)r.events,
                         "calls", (unsigned long long)r.calls, "notes", (unsigned long long)r.notes,
                         "skipped", (unsigned long long)r.skipped, "bytes",
                         (unsigned long long)r.bytes, "is_whole", PyBool_FromLong(r.is_whole),
                         "is_trace", PyBool_FromLong(r.is_trace));
}

static PyObject *import_write(PyObject *module, PyObject *args)
{
    kpti_chrome_import *import;
    kpti_session_error error;
    PyObject *capsule;
    PyObject *path;
    const char *info;
    Py_ssize_t info_size;
    kpt_status status;
    int os_error = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO&y#", &capsule, PyUnicode_FSConverter, &path, &info, &info_size))
        return NULL;
    import = PyCapsule_GetPointer(capsule, import_name);
    if (import) {
        const char *const name = PyBytes_AsString(path);
        Py_BEGIN_ALLOW_THREADS;
        status =
            kpti_chrome_import_write(import, name, (kpt_str){info, (uint64_t)info_size}, &os_error);
        Py_END_ALLOW_THREADS;
        if (status == KPT_E_IO) {
            (void)kpti_session_fail_io(&error, os_error, name);
            (void)kpti_raise(&error, NULL);
        } else if (status != KPT_OK) {
            (void)fail(status);
        }
    }
    Py_DECREF(path);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

PyMethodDef kpti_import_methods[] = {
    {"import_open", import_open, METH_NOARGS,
     "import_open() -> import of a trace in Chrome's JSON format"},
    {"import_feed", import_feed, METH_VARARGS,
     "import_feed(import, bytes) -> whether further bytes are of use"},
    {"import_end", import_end, METH_O,
     "import_end(import) -> counts; is_whole: the text was complete; is_trace: it has a list of "
     "events"},
    {"import_write", import_write, METH_VARARGS,
     "import_write(import, path, info): writes the .kpt file"},
    {NULL, NULL, 0, NULL},
};
