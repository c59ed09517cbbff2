/* py_findings.h: explain() of the module. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_PY_FINDINGS_H
#define KPTI_HOSTS_STANDALONE_MODULE_PY_FINDINGS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern const char kpti_explain_doc[];
PyObject *kpti_explain_call(PyObject *module, PyObject *args);

#endif
