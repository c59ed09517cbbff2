/* py_tasks.h: tasks(trace, progress), a function of the module. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_PY_TASKS_H
#define KPTI_HOSTS_STANDALONE_MODULE_PY_TASKS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern const char kpti_tasks_doc[];
PyObject *kpti_tasks_call(PyObject *module, PyObject *args);

#endif
