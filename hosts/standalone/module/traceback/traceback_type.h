/* traceback_type.h: the type Traceback. The GIL is held. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_TRACEBACK_TRACEBACK_TYPE_H
#define KPTI_HOSTS_STANDALONE_MODULE_TRACEBACK_TRACEBACK_TYPE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hosts/standalone/module/traceback/traceback_state.h"

/* Returns a new object that is not tracked yet and has no traceback and skip. Returns NULL with an exception. */
kpti_traceback_object *kpti_new_traceback(PyObject *module, kpti_module_state *state);
void kpti_free_spares(kpti_module_state *state);

PyTypeObject *kpti_make_traceback_type(PyObject *module);

#endif
