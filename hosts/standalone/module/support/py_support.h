/* py_support.h: helpers of the module's functions: sessions in capsules, errors as exceptions, long calls
 * without the GIL. The GIL is held. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_SUPPORT_PY_SUPPORT_H
#define KPTI_HOSTS_STANDALONE_MODULE_SUPPORT_PY_SUPPORT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hosts/standalone/session/session_types.h"

extern const char kpti_capsule_name[];

/* Returns the capsule's session, or NULL with an exception. */
kpti_session *kpti_session_of(PyObject *capsule);

/* Sets the exception for ERROR, unless an exception is set. PATH is the file's name, or NULL. Returns NULL. */
PyObject *kpti_raise(const kpti_session_error *error, PyObject *path);

/* A long call. The GIL is released, and acquired again for signals and progress. */
typedef struct kpti_long_call {
    PyThreadState *released;
    PyObject *progress; /* called with the number of calls so far; or NULL */
    int raised;
} kpti_long_call;

/* Returns the callbacks for the session's functions while the GIL is released in CALL. */
kpti_session_watch kpti_watch_of(kpti_long_call *call);

/* Converts COUNT to a dictionary. */
PyObject *kpti_count_to_dict(const kpti_session_count *count);

#endif
