/* py_triggers.h: the functions of the module _standalone for a flight recorder that writes itself. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_PY_TRIGGERS_H
#define KPTI_HOSTS_STANDALONE_MODULE_PY_TRIGGERS_H

#include <Python.h>

extern const char kpti_step_doc[];
extern const char kpti_ask_dump_doc[];
extern const char kpti_own_dumps_doc[];

PyObject *kpti_step_call(PyObject *module, PyObject *args);
PyObject *kpti_ask_dump_call(PyObject *module, PyObject *args);
PyObject *kpti_own_dumps_call(PyObject *module, PyObject *capsule);

#endif
