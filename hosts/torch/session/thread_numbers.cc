#include "hosts/torch/session/thread_numbers.h"

#include <ATen/record_function.h>
#include <unistd.h>

namespace kpytrace
{

void Threads::list_present()
{
    std::lock_guard<std::mutex> guard(lock_);
    each_thread_state([this](PyThreadState *state) {
        if (unsigned long os_tid = os_tid_of(state, 0)) numbers_.emplace(os_tid, numbers_.size());
    });
    present_ = numbers_.size();
}

void Threads::number_locked(Thread &thread, uint64_t os_tid)
{
    thread.python_tid = numbers_.emplace(os_tid, numbers_.size()).first->second;
    thread.late = thread.python_tid >= present_;
}

uint64_t Threads::attach(torch::profiler::impl::RecordQueue *queue, uint64_t os_tid)
{
    Thread thread;
    if (queue) {
        auto *own = queue->getSubqueue();
        thread.tid = own->tid();
        thread.where = own->kineto_info();
    } else {
        thread.tid = at::RecordFunction::currentThreadId();
        thread.where = {static_cast<int32_t>(getpid()), static_cast<int32_t>(os_tid)};
    }
    std::lock_guard<std::mutex> guard(lock_);
    number_locked(thread, os_tid);
    attached_[thread.tid] = thread;
    return thread.tid;
}

Thread Threads::of(const kpt_thread &delivered)
{
    std::lock_guard<std::mutex> guard(lock_);
    const auto attached = attached_.find(delivered.host_value);
    if (attached != attached_.end()) return attached->second;
    // The thread was inside Python all the time, so torch has no number for it. It gets a number that torch
    // never assigns.
    Thread thread;
    thread.tid = delivered.os_tid | uint64_t{1} << 40;
    thread.where = {static_cast<int32_t>(getpid()), static_cast<int32_t>(delivered.os_tid)};
    number_locked(thread, delivered.os_tid);
    return thread;
}

} // namespace kpytrace
