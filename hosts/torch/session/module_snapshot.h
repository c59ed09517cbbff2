// module_snapshot.h: reads from a module or an optimizer what torch's memory profiler needs. The GIL is held.
// No exception is left set; values that can't be read are omitted.
#ifndef KPTI_HOSTS_TORCH_SESSION_MODULE_SNAPSHOT_H
#define KPTI_HOSTS_TORCH_SESSION_MODULE_SNAPSHOT_H

#include <Python.h>
#include <torch/csrc/profiler/collection.h>

namespace kpytrace
{

// Without WITH_PARAMETERS, only the class is read.
torch::profiler::impl::NNModuleInfo read_module(PyObject *module, bool with_parameters);
torch::profiler::impl::OptimizerInfo read_optimizer(PyObject *optimizer);

} // namespace kpytrace
#endif
