/* py_memory.h: the functions of the module for recordings of memory. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_PY_MEMORY_H
#define KPTI_HOSTS_STANDALONE_MODULE_PY_MEMORY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyMethodDef kpti_memory_methods[]; /* ends with an entry without a name */

#endif
