// cuda_loader.h: loads the library that reports tensors in CUDA memory, cuda/cuda_allocator.cc. The library is
// compiled only if torch is a CUDA build, and uses only one function of the shim.
#ifndef KPTI_HOSTS_TORCH_MEMORY_CUDA_LOADER_H
#define KPTI_HOSTS_TORCH_MEMORY_CUDA_LOADER_H

#include <string>

namespace kpytrace
{

// Loads LIBRARY, which then reports to the tracer of record_tensors for ever, since torch never removes a
// listener of its allocator. A repeated call does nothing. Returns "", or the reason of a failure. CUDA must be
// initialised. Any thread may call it.
std::string attach_cuda(const char *library);

} // namespace kpytrace
#endif
