// tensor_reports.h: reports tensors to the receiving tracer, with the data that is cheaply available at an
// allocation. The allocators' sides (cpu_allocator.h, cuda_loader.h) only pass the position and size of a
// block.
#ifndef KPTI_HOSTS_TORCH_MEMORY_TENSOR_REPORTS_H
#define KPTI_HOSTS_TORCH_MEMORY_TENSOR_REPORTS_H

#include <atomic>
#include <mutex>
#include <string>

#include "abi/kpt.h"

namespace kpytrace
{
namespace tensors
{

// Held while the receiver or the allocators are changed. Blocks are reported without it.
extern std::mutex control;

// Read it only to check whether any tracer receives reports. Blocks are passed to report().
extern std::atomic<const kpt_memory_tracer *> receiver;

// The position of a block.
struct Place {
    int32_t device_type;
    int32_t device_index; // -1 for the only device of its type
    uint64_t stream;
};

// ACTION is KPT_REPORT_ALLOC, with the category and the module of this thread, or KPT_REPORT_FREE. Any thread,
// with any lock of torch held: it acquires neither the GIL nor a lock of torch. Costs one load if there is no
// receiver.
void report(uint32_t action, const Place &place, uint64_t address, uint64_t size);

// The caller holds control. begin_locked returns "", or the reason why the tracer cannot receive reports. When
// end_locked returns, no thread is inside the tracer's report.
std::string begin_locked(const kpt_memory_tracer &tracer);
void end_locked();

} // namespace tensors

// Sets the module whose forward runs on this thread, or "" for none. The first 255 bytes of its path are kept.
void enter_module(const char *path, size_t size);

} // namespace kpytrace
#endif
