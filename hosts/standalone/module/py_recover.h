/* py_recover.h: recover(plugin, journal, path), a function of the module. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_PY_RECOVER_H
#define KPTI_HOSTS_STANDALONE_MODULE_PY_RECOVER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern const char kpti_recover_doc[];
PyObject *kpti_recover_call(PyObject *module, PyObject *args);

#endif
