#include "hosts/torch/operators/op_caller.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <vector>

namespace kpytrace
{

namespace
{

// Never destroyed: threads end after static objects.
struct OpCallers {
    std::mutex lock;
    std::unordered_set<OpCaller *> all;
};

OpCallers &op_callers()
{
    static OpCallers *const made = new OpCallers;
    return *made;
}

bool membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0) == 0;
}

} // namespace

OpCaller::OpCaller()
{
    std::lock_guard<std::mutex> guard(op_callers().lock);
    op_callers().all.insert(this);
}

OpCaller::~OpCaller()
{
    std::lock_guard<std::mutex> guard(op_callers().lock);
    op_callers().all.erase(this);
}

[[gnu::cold]] OpCaller::Open OpCaller::close_outer(const void *function)
{
    for (uint32_t i = open_count_; i-- > 0;) {
        if (open_[i].function != function) continue;
        const Open found = open_[i];
        std::copy(open_.begin() + i + 1, open_.begin() + open_count_, open_.begin() + i);
        open_count_--;
        return found;
    }
    return {};
}

void OpCaller::prepare()
{
    op_hot.needs_fence = !membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

void OpCaller::wait_for_others()
{
    struct Inside {
        OpCaller *caller;
        uint32_t entries;
    };
    std::vector<Inside> inside;
    const OpCaller *const own = &here(); // made before the lock is acquired
    if (!op_hot.needs_fence && !membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) {
        // It was possible before, so a sandbox has come since. Threads that are inside see the store soon.
        op_hot.needs_fence = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    std::atomic_thread_fence(std::memory_order_seq_cst);
    {
        std::lock_guard<std::mutex> guard(op_callers().lock);
        for (OpCaller *caller : op_callers().all)
            if (caller != own && caller->depth_.load(std::memory_order_acquire))
                inside.push_back({caller, caller->entries_.load(std::memory_order_acquire)});
    }
    // Not under the lock: a thread inside may wait for a lock that a forking thread holds, which waits for ours.
    while (!inside.empty()) {
        std::this_thread::yield();
        std::lock_guard<std::mutex> guard(op_callers().lock);
        std::erase_if(inside, [](const Inside &one) {
            return !op_callers().all.contains(one.caller) ||
                   !one.caller->depth_.load(std::memory_order_acquire) ||
                   one.caller->entries_.load(std::memory_order_acquire) != one.entries;
        });
    }
}

void OpCaller::hold()
{
    (void)here(); // makes it, so that forked() does not
    op_callers().lock.lock();
}

void OpCaller::release()
{
    op_callers().lock.unlock();
}

void OpCaller::forked()
{
    const OpCaller *const own = &here();
    for (OpCaller *caller : op_callers().all)
        if (caller != own) caller->depth_ = 0;
}

} // namespace kpytrace
