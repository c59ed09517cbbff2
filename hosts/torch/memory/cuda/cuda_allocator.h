// cuda_allocator.h: the interface between the shim and the library that listens to torch's CUDA allocator.
#ifndef KPTI_HOSTS_TORCH_MEMORY_CUDA_CUDA_ALLOCATOR_H
#define KPTI_HOSTS_TORCH_MEMORY_CUDA_CUDA_ALLOCATOR_H

#include <cstddef>
#include <cstdint>

namespace kpytrace
{

struct CudaBlock {
    bool is_freed; // otherwise it was allocated
    int32_t device;
    uint64_t stream;
    uint64_t address;
    uint64_t size; // the requested size
};

// Called with a lock of the allocator held, and often with the GIL. It must acquire neither.
typedef void (*CudaReportFn)(const CudaBlock *block);

// REPORT is called for each block from now on. Returns false with the reason in WHY, of SIZE bytes.
typedef bool (*CudaAttachFn)(CudaReportFn report, char *why, size_t size);
constexpr const char *CUDA_ATTACH = "kpytrace_cuda_attach"; // its symbol name

} // namespace kpytrace
#endif
