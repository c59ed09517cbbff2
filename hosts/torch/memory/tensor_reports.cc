#include "hosts/torch/memory/tensor_reports.h"

#include <pthread.h>
#include <sched.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace kpytrace
{
namespace tensors
{

std::mutex control;

// Read while this thread is counted as inside; written by begin_locked and end_locked.
std::atomic<const kpt_memory_tracer *> receiver{nullptr};

// Counts the threads that are inside, in several counters that share no cache line.
struct alignas(64) Counter {
    std::atomic<uint32_t> inside{0};
};
std::array<Counter, 16> counters;

// Per thread. Nothing here is ever destroyed, since blocks are freed until the very end of a thread.
struct Reporter {
    uint32_t number;    // of its counter; 0 before the first use
    uint32_t recording; // the recording in which path was set
    uint32_t path_size;
    char path[255]; // of the module whose forward runs
};
thread_local Reporter reporter;

std::atomic<uint32_t> recordings{0}; // number of recordings begun

kpt_str path()
{
    const bool is_of_now = reporter.recording == recordings.load(std::memory_order_relaxed);
    return {reporter.path, is_of_now ? reporter.path_size : 0};
}

Counter &counter()
{
    static std::atomic<uint32_t> threads{0};
    if (!reporter.number) reporter.number = ++threads | UINT32_C(1) << 31;
    return counters[reporter.number % counters.size()];
}

kpt_str category(kpt_str owner)
{
    if (owner.size) return kpt_str_of("forward");
    if (torch::autograd::get_current_node()) return kpt_str_of("backward");
    return {nullptr, 0};
}

void report(uint32_t action, const Place &place, uint64_t address, uint64_t size)
{
    if (!receiver.load(std::memory_order_relaxed)) return;
    Counter &count = counter();
    count.inside.fetch_add(1);
    if (const kpt_memory_tracer *to = receiver.load()) {
        kpt_memory_report r;
        KPT_INIT(&r);
        r.action = action;
        r.address = address;
        r.size = size;
        r.device_type = place.device_type;
        r.device_index = place.device_index;
        r.stream = place.stream;
        if (action == KPT_REPORT_ALLOC) {
            r.owner = path();
            r.category = category(r.owner);
        }
        (void)to->ops->report(to->self, &r);
    }
    count.inside.fetch_sub(1, std::memory_order_release);
}

// Handlers around a fork. In the child the other threads do not exist, and the tracer records no more.
void lock_control()
{
    control.lock();
}

void unlock_control()
{
    control.unlock();
}

void forked()
{
    receiver = nullptr;
    for (Counter &count : counters)
        count.inside = 0;
    control.unlock();
}

std::string begin_locked(const kpt_memory_tracer &tracer)
{
    static std::once_flag once;
    if (!KPT_HAS(tracer.ops, kpt_memory_ops, report) || !tracer.ops->report)
        return "this plugin does not support reports of memory";
    std::call_once(once, [] { (void)pthread_atfork(lock_control, unlock_control, forked); });
    recordings++;
    receiver = new kpt_memory_tracer(tracer);
    return "";
}

void end_locked()
{
    const kpt_memory_tracer *before = receiver.exchange(nullptr);
    for (const Counter &count : counters)
        while (before && count.inside.load())
            (void)sched_yield();
    delete before;
}

} // namespace tensors

void enter_module(const char *path, size_t size)
{
    tensors::Reporter &own = tensors::reporter;
    own.recording = tensors::recordings;
    own.path_size = static_cast<uint32_t>(std::min(size, sizeof own.path));
    if (size) std::memcpy(own.path, path, own.path_size);
}

} // namespace kpytrace
