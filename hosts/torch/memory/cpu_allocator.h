// cpu_allocator.h: our place in front of torch's CPU allocator: tensors in the processor's memory are
// reported to a memory tracer. A block that is recorded has our deleter, for as long as it lives: it
// may be freed after recording has ended, in any thread, also when Python is gone.
//
// Somebody who puts another allocator in front of ours keeps ours in the chain, where it hands
// everything on while nobody records.
#ifndef KPTI_HOSTS_TORCH_MEMORY_CPU_ALLOCATOR_H
#define KPTI_HOSTS_TORCH_MEMORY_CPU_ALLOCATOR_H

#include <string>

#include "abi/kpt.h"

namespace kpytrace
{

// From now on TRACER is told of tensors, whatever device they are on, and nobody else. "": done, else why not. Any thread.
std::string record_tensors(const kpt_memory_tracer &tracer);
// It is told no more: no thread is inside of its report. Where another one is told, nothing changes.
void stop_tensors(const kpt_memory_tracer &tracer);

} // namespace kpytrace
#endif
