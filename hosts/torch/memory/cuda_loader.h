// cuda_loader.h: tensors in CUDA's memory are reported too: by a library of its own, cuda/cuda_allocator.cc,
// which is compiled only where torch is a CUDA build, and which knows nothing of us but one function.
#ifndef KPTI_HOSTS_TORCH_MEMORY_CUDA_LOADER_H
#define KPTI_HOSTS_TORCH_MEMORY_CUDA_LOADER_H

#include <string>

namespace kpytrace
{

// Loads LIBRARY, and has it report to whom record_tensors says, from now on and for ever: torch keeps who
// listens to its allocator. Again is no change. "": done, else why not. CUDA is initialised. Any thread.
std::string attach_cuda(const char *library);

} // namespace kpytrace
#endif
