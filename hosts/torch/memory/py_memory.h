// py_memory.h: the functions of the shim's module for memory.
#ifndef KPTI_HOSTS_TORCH_MEMORY_PY_MEMORY_H
#define KPTI_HOSTS_TORCH_MEMORY_PY_MEMORY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace kpytrace
{

extern PyMethodDef memory_methods[]; // ends with a row of nulls

} // namespace kpytrace
#endif
