// tensor_reports.h: who is told of tensors, and what is cheaply known of one when it is allocated. The
// allocators' sides (cpu_allocator.h, cuda_loader.h) only say where a block lies, and how large it is.
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

// One call changes who is told, and the allocators, at a time. Blocks are reported without it.
extern std::mutex control;

// Read here to ask whether anybody is told at all; blocks go through report.
extern std::atomic<const kpt_memory_tracer *> receiver;

// Where a block is.
struct Place {
    int32_t device_type;
    int32_t device_index; // -1: the only one of its type
    uint64_t stream;
};

// KPT_REPORT_ALLOC, with the category and the module of this thread, or KPT_REPORT_FREE. Any thread, with
// any lock of torch's: no GIL is taken, and no lock that torch knows. Nobody told: one load.
void report(uint32_t action, const Place &place, uint64_t address, uint64_t size);

// With control held. begin: "" or why the tracer can't be told. end: when it returns no thread is inside of
// the tracer's report.
std::string begin_locked(const kpt_memory_tracer &tracer);
void end_locked();

} // namespace tensors

// The module whose forward runs on this thread, of whose path 255 bytes are kept; "": none.
void enter_module(const char *path, size_t size);

} // namespace kpytrace
#endif
