// py_session_view.h: the functions of the shim's Python module for profiles that kpytrace records without Kineto: the
// callbacks for the host that makes the tracer, and the view of its recording for the exporter.
#ifndef KPTI_HOSTS_TORCH_SESSION_PY_SESSION_VIEW_H
#define KPTI_HOSTS_TORCH_SESSION_PY_SESSION_VIEW_H

#include <Python.h>

#include <memory>

#include "hosts/torch/session/session_settings.h"

namespace kpytrace
{

// Returns the settings in ARGS, the arguments of install(), or null with an exception.
std::shared_ptr<const Settings> read_settings(PyObject *args);

extern PyMethodDef session_view_methods[];

} // namespace kpytrace
#endif
