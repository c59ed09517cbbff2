/* py_gpu.h: gpu(trace), gpu_report(trace) and gpu_log(trace), functions of the module. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_PY_GPU_H
#define KPTI_HOSTS_STANDALONE_MODULE_PY_GPU_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern const char kpti_gpu_doc[];
extern const char kpti_gpu_report_doc[];
extern const char kpti_gpu_log_doc[];
PyObject *kpti_gpu_call(PyObject *module, PyObject *capsule);
PyObject *kpti_gpu_report_call(PyObject *module, PyObject *capsule);
PyObject *kpti_gpu_log_call(PyObject *module, PyObject *capsule);

#endif
