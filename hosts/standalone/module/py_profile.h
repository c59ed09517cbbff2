/* py_profile.h: profile(trace, sort, most, by_thread, progress), a function of the module. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_PY_PROFILE_H
#define KPTI_HOSTS_STANDALONE_MODULE_PY_PROFILE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern const char kpti_profile_doc[];
PyObject *kpti_profile_call(PyObject *module, PyObject *args);

#endif
