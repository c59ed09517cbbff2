// thread_state.h: the profile of a thread, as torch's C++ code finds it, for a profile that Kineto does not record. torch
// finds it in a slot of each thread, which it copies to the threads that work for it, such as autograd's. Without one,
// _RecordFunctionFast marks nothing, and torch reports no memory. The object says that it is the state of a profiler that
// emits only marks, so torch's own functions leave it alone. Slots are stacks: torch finds the last state that was
// pushed, which passes reports to the one below it.
#ifndef KPTI_HOSTS_TORCH_SESSION_THREAD_STATE_H
#define KPTI_HOSTS_TORCH_SESSION_THREAD_STATE_H

#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include <atomic>
#include <memory>

namespace kpytrace
{

// One that WANTS_MEMORY receives reports of memory; the other one is a mark. With WANTS_INPUTS, torch passes inputs of
// _RecordFunctionFast.
class ThreadState : public torch::profiler::impl::ProfilerStateBase,
                    public std::enable_shared_from_this<ThreadState>
{
  public:
    ThreadState(bool wants_memory, bool wants_inputs);
    ThreadState(const ThreadState &) = delete;
    ThreadState &operator=(const ThreadState &) = delete;
    ~ThreadState() override;

    torch::profiler::impl::ActiveProfilerType profilerType() override
    {
        return torch::profiler::impl::ActiveProfilerType::NVTX;
    }
    bool memoryProfilingEnabled() const override
    {
        return (wants_memory_ && is_running()) || (outer_ && outer_->memoryProfilingEnabled());
    }
    void reportMemoryUsage(void *address, int64_t size, size_t allocated, size_t reserved,
                           c10::Device device) override
    {
        if (outer_) outer_->reportMemoryUsage(address, size, allocated, reserved, device);
    }
    void reportOutOfMemory(int64_t size, size_t allocated, size_t reserved,
                           c10::Device device) override
    {
        if (outer_) outer_->reportOutOfMemory(size, allocated, reserved, device);
    }

    bool wants_memory() const
    {
        return wants_memory_;
    }
    // Not after close(), and not in the child of a fork: another thread of the parent may have held its lock.
    bool is_running() const;
    void close();

    // Returns the last state in the slot of the calling thread, or null.
    static c10::DebugInfoBase *last()
    {
        return c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE);
    }

    // Returns whether the calling thread is one that STATE's profile began on, or works for one: whether its slot has
    // STATE. A profiler of torch's own in the slot hides the states below it, and the answer is then true.
    static bool is_here(const ThreadState *state)
    {
        const c10::DebugInfoBase *const found = last();
        return found == state || (found && is_below_last(state));
    }

    // Pushes STATE onto the slot of the calling thread, and returns true. Returns false if the slot has another profiler.
    // Called once for each STATE, unless free_thread() has removed it.
    static bool push(const std::shared_ptr<ThreadState> &state);
    // Removes STATE from the slot of the calling thread if it is the last there.
    static void remove(const ThreadState *state);
    // Removes states that do not run from the slot of the calling thread, since torch takes them for profiles that do,
    // and MARKS too, if that is true. Returns whether other threads have states that were closed.
    static bool free_thread(bool marks);

  private:
    static bool is_below_last(const ThreadState *state);

    const bool wants_memory_;
    std::atomic<bool> is_open_{true};
    const uint32_t forks_;
    std::shared_ptr<ThreadState> outer_; // below it in its slot; written before torch finds this
};

} // namespace kpytrace
#endif
