// torch_address.h: addresses inside torch's library that the package has looked up in its symbol table.
#ifndef KPTI_HOSTS_TORCH_COMMON_TORCH_ADDRESS_H
#define KPTI_HOSTS_TORCH_COMMON_TORCH_ADDRESS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>

extern PyObject *THPVariableClass; // defined by torch

namespace kpytrace
{

// The address DISTANCE bytes after torch's THPVariableClass; null for 0.
inline void *torch_address(long long distance)
{
    if (!distance) return nullptr;
    return reinterpret_cast<void *>(reinterpret_cast<intptr_t>(&THPVariableClass) + distance);
}

} // namespace kpytrace
#endif
