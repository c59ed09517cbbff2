/* py_merge.h: the functions of the module that write several traces to one file. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_PY_MERGE_H
#define KPTI_HOSTS_STANDALONE_MODULE_PY_MERGE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyMethodDef kpti_merge_methods[]; /* ends with an entry without a name */

#endif
