#include "hosts/torch/exporter/py_recording.h"

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
