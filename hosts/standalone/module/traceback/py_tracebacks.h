/* py_tracebacks.h: the functions of the module for tracebacks. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_TRACEBACK_PY_TRACEBACKS_H
#define KPTI_HOSTS_STANDALONE_MODULE_TRACEBACK_PY_TRACEBACKS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Adds the functions and the type Traceback to MODULE. Returns 0, or -1 with an exception. */
int kpti_add_tracebacks(PyObject *module);

#endif
