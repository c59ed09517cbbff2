// module_snapshot.h: what torch's memory profiler wants of a module and an optimizer, read now. The GIL is
// held; no exception is left, what can't be read is left out.
#ifndef KPTI_HOSTS_TORCH_PROFILER_MODULE_SNAPSHOT_H
#define KPTI_HOSTS_TORCH_PROFILER_MODULE_SNAPSHOT_H

#include <Python.h>
#include <torch/csrc/profiler/collection.h>

namespace kpytrace
{

torch::profiler::impl::NNModuleInfo read_module(PyObject *module);
torch::profiler::impl::OptimizerInfo read_optimizer(PyObject *optimizer);

} // namespace kpytrace
#endif
