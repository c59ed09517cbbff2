/* py_exporter.h: what the functions of kpytrace.torch._exporter share. The GIL is held. */
#ifndef KPTI_TORCH_PY_EXPORTER_H
#define KPTI_TORCH_PY_EXPORTER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hosts/torch/exporter/exporter.h"
#include "writers/gpu/gpu_log.h"

/* Sets the exception for a failure, unless one is set. The paths are Python's own objects. Returns NULL. */
PyObject *kpti_raise_export(kpt_status status, const kpti_export_result *result, PyObject *source,
                            PyObject *target);

/* Stores the capsule's recording, or NULL for None, in *OUT. Returns 0 if CAPSULE is neither. */
int kpti_recording_of(PyObject *capsule, const kpti_torch_recording **out);

/* Stores the capsule's log, or NULL for None, in *OUT. Returns 0 if CAPSULE is neither. */
int kpti_gpu_log_of(PyObject *capsule, const kpti_gpu_log **out);

extern const char kpti_write_native_doc[];
PyObject *kpti_write_native(PyObject *module, PyObject *args);

#endif
