/* py_import.h: the module's functions that read traces of other tools. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_PY_IMPORT_H
#define KPTI_HOSTS_STANDALONE_MODULE_PY_IMPORT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyMethodDef kpti_import_methods[];

#endif
