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

/* Makes the row INDEX of a table, or returns NULL with an exception. */
typedef PyObject *(*kpti_row_fn)(const void *table, uint32_t index);

/* Returns the first COUNT rows of TABLE as a list. If TAKE is a function and not None, calls it with lists of
 * at most 4,096 rows, so that not all of them are in memory, and returns None. */
PyObject *kpti_rows_to_lists(const void *table, uint32_t count, kpti_row_fn make, PyObject *take);

/* Converts COUNT to a dictionary. */
PyObject *kpti_count_to_dict(const kpti_session_count *count);

#endif
