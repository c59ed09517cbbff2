/* py_recording.h: takes a recording out of the capsule in which the shim lends it. */
#ifndef KPTI_TORCH_PY_RECORDING_H
#define KPTI_TORCH_PY_RECORDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hosts/torch/profiler/exporter_view.h"

/* Stores the capsule's recording, or NULL for None, in *OUT. Returns 0 with an exception if CAPSULE is neither. */
int kpti_recording_of(PyObject *capsule, const kpti_torch_recording **out);

#endif
