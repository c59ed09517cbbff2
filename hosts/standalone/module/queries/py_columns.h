/* py_columns.h: columns(trace, steps, take, ranges), a function of the module. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_PY_COLUMNS_H
#define KPTI_HOSTS_STANDALONE_MODULE_PY_COLUMNS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern const char kpti_columns_doc[];
PyObject *kpti_columns_call(PyObject *module, PyObject *args);

#endif
