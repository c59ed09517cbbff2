/* py_support.h: what the module's functions have in common: sessions in capsules, errors as exceptions, long
 * calls without the GIL. The GIL is held. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_PY_SUPPORT_H
#define KPTI_HOSTS_STANDALONE_MODULE_PY_SUPPORT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hosts/standalone/session/session.h"

extern const char kpti_capsule_name[];

/* The capsule's session; NULL with an exception. */
kpti_session *kpti_session_of(PyObject *capsule);

/* Sets the exception that tells ERROR, unless one is set; PATH is the file's name, where there is one.
 * Always NULL. */
PyObject *kpti_raise(const kpti_session_error *error, PyObject *path);

/* A long call: the GIL is released, and taken for signals and for progress. */
typedef struct kpti_long_call {
    PyThreadState *released;
    PyObject *progress; /* called with the number of calls so far; NULL: nobody */
    int raised;
} kpti_long_call;

/* For the session's functions while the GIL is released in CALL. */
kpti_session_watch kpti_watch_of(kpti_long_call *call);

/* profile(trace, sort, most, by_thread, progress): a method of the module. */
extern const char kpti_profile_doc[];
PyObject *kpti_profile_call(PyObject *module, PyObject *args);

/* gpu(trace), gpu_report(trace): methods of the module. */
extern const char kpti_gpu_doc[];
extern const char kpti_gpu_report_doc[];
PyObject *kpti_gpu_call(PyObject *module, PyObject *capsule);
PyObject *kpti_gpu_report_call(PyObject *module, PyObject *capsule);

/* columns(trace, steps, take): a method of the module. */
extern const char kpti_columns_doc[];
PyObject *kpti_columns_call(PyObject *module, PyObject *args);

/* tasks(trace, progress): a method of the module. */
extern const char kpti_tasks_doc[];
PyObject *kpti_tasks_call(PyObject *module, PyObject *args);

/* recover(plugin, journal, path): a method of the module. */
extern const char kpti_recover_doc[];
PyObject *kpti_recover_call(PyObject *module, PyObject *args);

/* What was delivered, for Python. */
PyObject *kpti_count_to_dict(const kpti_session_count *count);

/* py_merge.c: the module's functions that put several traces into one file. */
extern PyMethodDef kpti_merge_methods[];

/* py_memory.c: the module's functions for recordings of memory, up to one without a name. */
extern PyMethodDef kpti_memory_methods[];

#endif
