/* py_profile.h: profile(trace, sort, most, by_thread, progress) and thread_sums(trace, most, progress, take), functions
 * of the module. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_PY_PROFILE_H
#define KPTI_HOSTS_STANDALONE_MODULE_PY_PROFILE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern const char kpti_profile_doc[];
PyObject *kpti_profile_call(PyObject *module, PyObject *args);
extern const char kpti_thread_sums_doc[];
PyObject *kpti_thread_sums_call(PyObject *module, PyObject *args);

#endif
