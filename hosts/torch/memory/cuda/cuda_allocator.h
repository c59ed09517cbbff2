// cuda_allocator.h: what the shim and the library that listens to torch's CUDA allocator say to each other.
#ifndef KPTI_HOSTS_TORCH_MEMORY_CUDA_CUDA_ALLOCATOR_H
#define KPTI_HOSTS_TORCH_MEMORY_CUDA_CUDA_ALLOCATOR_H

#include <cstddef>
#include <cstdint>

namespace kpytrace
{

struct CudaBlock {
    bool is_freed; // else it was allocated
    int32_t device;
    uint64_t stream;
    uint64_t address;
    uint64_t size; // that was asked for
};

// Called with a lock of the allocator's held, and often with the GIL: takes neither.
typedef void (*CudaReportFn)(const CudaBlock *block);

// Has REPORT called for each block from now on. False: WHY has the reason, in SIZE bytes.
typedef bool (*CudaAttachFn)(CudaReportFn report, char *why, size_t size);
constexpr const char *CUDA_ATTACH = "kpytrace_cuda_attach"; // its symbol

} // namespace kpytrace
#endif
