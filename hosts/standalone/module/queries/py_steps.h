/* py_steps.h: kpytrace._standalone.steps, which finds the steps of a program. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_PY_STEPS_H
#define KPTI_HOSTS_STANDALONE_MODULE_PY_STEPS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern const char kpti_steps_doc[];
PyObject *kpti_steps_call(PyObject *module, PyObject *capsule);

#endif
