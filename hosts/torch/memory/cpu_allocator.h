// cpu_allocator.h: an allocator in front of torch's CPU allocator, which reports tensors in host memory to a
// memory tracer. A recorded block has our deleter as long as it lives. It may be freed after recording has
// ended, on any thread, also after Python has ended.
//
// If another library puts its allocator in front of ours, ours stays in the chain, and passes every call on
// while nothing is recorded.
#ifndef KPTI_HOSTS_TORCH_MEMORY_CPU_ALLOCATOR_H
#define KPTI_HOSTS_TORCH_MEMORY_CPU_ALLOCATOR_H

#include <string>

#include "abi/kpt.h"

namespace kpytrace
{

// From now on TRACER, and no other tracer, receives reports of tensors on all devices. Returns "", or the
// reason of a failure. Any thread may call it.
std::string record_tensors(const kpt_memory_tracer &tracer);
// TRACER receives no more reports. When it returns, no thread is inside TRACER's report. Does nothing if
// another tracer receives the reports.
void stop_tensors(const kpt_memory_tracer &tracer);

} // namespace kpytrace
#endif
