#include "hosts/torch/memory/cuda/cuda_allocator.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include <cstdio>
#include <exception>

namespace kpytrace
{
namespace
{

namespace allocator = c10::cuda::CUDACachingAllocator;

// A block ends when the program frees it, as in torch.cuda.memory_allocated. The memory may become available
// later, when the streams that use it are done.
void heard(CudaReportFn report, const allocator::TraceEntry &entry)
{
    const bool is_freed = entry.action_ == allocator::TraceEntry::FREE_REQUESTED;
    if (!is_freed && entry.action_ != allocator::TraceEntry::ALLOC) return;
    const CudaBlock block = {is_freed, entry.device_, reinterpret_cast<uintptr_t>(entry.stream_),
                             static_cast<uint64_t>(entry.addr_),
                             static_cast<uint64_t>(entry.size_)};
    report(&block);
}

} // namespace

extern "C" __attribute__((visibility("default"))) bool kpytrace_cuda_attach(CudaReportFn report,
                                                                            char *why, size_t size)
{
    try {
        // Before it is initialised, the allocator has no devices to listen to, and would report nothing.
        if (allocator::get()->initialized()) {
            allocator::attachAllocatorTraceTracker(
                [report](const allocator::TraceEntry &entry) { heard(report, entry); });
            return true;
        }
        (void)snprintf(why, size, "CUDA is not initialised");
    } catch (const c10::Error &error) { // the other allocators support no listeners
        (void)snprintf(why, size, "%s", error.what_without_backtrace());
    } catch (const std::exception &error) {
        (void)snprintf(why, size, "%s", error.what());
    }
    return false;
}

} // namespace kpytrace
