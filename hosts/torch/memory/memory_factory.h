// memory_factory.h: torch's door for memory tracers: what Kineto starts, sleeps with, exports and stops
// for a snapshot on demand, on a thread of its own that knows no Python.
#ifndef KPTI_HOSTS_TORCH_MEMORY_MEMORY_FACTORY_H
#define KPTI_HOSTS_TORCH_MEMORY_MEMORY_FACTORY_H

#include <torch/csrc/profiler/orchestration/python_tracer.h>

#include <string>

namespace kpytrace
{

// Snapshots from now on are recorded through PLUGIN.
void install_memory_door(const std::string &plugin);
// … by STOCK, null: by nobody. One that is being recorded is not touched.
void uninstall_memory_door(torch::profiler::impl::python_tracer::MakeMemoryFn stock);

} // namespace kpytrace
#endif
