/* py_edges.h: the module's function edges(). */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_PY_EDGES_H
#define KPTI_HOSTS_STANDALONE_MODULE_PY_EDGES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern const char kpti_edges_doc[];
PyObject *kpti_edges_call(PyObject *module, PyObject *args);

#endif
