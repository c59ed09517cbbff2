// memory_factory.h: registers our memory tracer with torch. For a snapshot on demand, Kineto starts it, sleeps,
// exports and stops it, on Kineto's own thread, which has no Python.
#ifndef KPTI_HOSTS_TORCH_MEMORY_MEMORY_FACTORY_H
#define KPTI_HOSTS_TORCH_MEMORY_MEMORY_FACTORY_H

#include <torch/csrc/profiler/orchestration/python_tracer.h>

#include <string>

namespace kpytrace
{

// Later snapshots are recorded through PLUGIN.
void install_memory_factory(const std::string &plugin);
// Later snapshots are recorded by STOCK, or not at all if it is null. A snapshot that is being recorded is not
// affected.
void uninstall_memory_factory(torch::profiler::impl::python_tracer::MakeMemoryFn stock);

} // namespace kpytrace
#endif
