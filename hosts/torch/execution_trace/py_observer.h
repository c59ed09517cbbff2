// py_observer.h: observers for the package: functions of the shim's module, with an observer in a capsule.
#ifndef KPTI_HOSTS_TORCH_EXECUTION_TRACE_PY_OBSERVER_H
#define KPTI_HOSTS_TORCH_EXECUTION_TRACE_PY_OBSERVER_H

#include <Python.h>

namespace kpytrace
{

// Ends with an empty row.
extern PyMethodDef observer_calls[];

} // namespace kpytrace
#endif
