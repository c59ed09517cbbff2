/* py_operators.h: kpytrace._standalone.operators, which adds up torch's operators. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_PY_OPERATORS_H
#define KPTI_HOSTS_STANDALONE_MODULE_PY_OPERATORS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern const char kpti_operators_doc[];
PyObject *kpti_operators_call(PyObject *module, PyObject *args);

#endif
