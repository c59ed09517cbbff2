#include "hosts/torch/exporter/py_exporter.h"

PyObject *kpti_raise_export(kpt_status status, const kpti_export_result *result, PyObject *source,
                            PyObject *target)
{
    PyObject *error;
    if (PyErr_Occurred()) return NULL;
    if (!result->os_error) {
        if (status == KPT_E_MEMORY) return PyErr_NoMemory();
        PyErr_SetString(PyExc_RuntimeError, result->text);
        return NULL;
    }
    error = PyObject_CallFunction(PyExc_OSError, "isO", result->os_error,
                                  result->text[0] ? result->text : strerror(result->os_error),
                                  result->of_target ? target : source);
    if (error) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    return NULL;
}

int kpti_recording_of(PyObject *capsule, const kpti_torch_recording **out)
{
    *out = NULL;
    if (capsule == Py_None) return 1;
    *out = PyCapsule_GetPointer(capsule, KPTI_TORCH_RECORDING_CAPSULE);
    if (*out && (*out)->struct_size == sizeof **out) return 1;
    if (*out)
        PyErr_SetString(PyExc_TypeError, "the recording was made by another version of the shim");
    return 0;
}

int kpti_gpu_log_of(PyObject *capsule, const kpti_gpu_log **out)
{
    *out = NULL;
    if (capsule == Py_None) return 1;
    *out = PyCapsule_GetPointer(capsule, KPTI_GPU_LOG_CAPSULE);
    return *out != NULL;
}
