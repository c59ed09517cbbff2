/* py_tracer.h: the tracer of a trace, for another host in the process that passes operators to it, and its counters. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_PY_TRACER_H
#define KPTI_HOSTS_STANDALONE_MODULE_PY_TRACER_H

#include <Python.h>

extern const char kpti_tracer_doc[];
PyObject *kpti_tracer_call(PyObject *module, PyObject *capsule);

/* Packs what is written. */
extern const char kpti_no_compress_doc[];
PyObject *kpti_no_compress_call(PyObject *module, PyObject *capsule);
extern const char kpti_compact_doc[];
PyObject *kpti_compact_call(PyObject *module, PyObject *capsule);

/* The records that a reader skips. */
extern const char kpti_skipped_doc[];
PyObject *kpti_skipped_call(PyObject *module, PyObject *capsule);

extern const char kpti_stats_doc[];
PyObject *kpti_stats_call(PyObject *module, PyObject *capsule);

#endif
