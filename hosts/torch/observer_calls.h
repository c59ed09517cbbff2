// observer_calls.h: observers for the package: functions of the shim's module, on a capsule.
#ifndef KPTI_TORCH_OBSERVER_CALLS_H
#define KPTI_TORCH_OBSERVER_CALLS_H

#include <Python.h>

namespace kpytrace
{

// Their rows, with an empty one at the end.
extern PyMethodDef observer_calls[];

} // namespace kpytrace
#endif
