// op_caller.h: a thread that may be inside a call of a tracer. Entering is two stores, without an atomic read and write:
// the thread that removes a tracer makes all others see each other's stores instead (membarrier), which is slow and rare.
#ifndef KPTI_HOSTS_TORCH_EXECUTION_TRACE_OP_CALLER_H
#define KPTI_HOSTS_TORCH_EXECUTION_TRACE_OP_CALLER_H

#include <atomic>
#include <cstdint>

#include "hosts/torch/common/thread_local_ptr.h"

namespace kpytrace
{

class OpCaller
{
  public:
    static OpCaller &here()
    {
        return ThreadLocalPtr<OpCaller>::here();
    }

    OpCaller();
    ~OpCaller();
    OpCaller(const OpCaller &) = delete;
    OpCaller &operator=(const OpCaller &) = delete;

    // A thread enters before it reads the tracers, and leaves after its calls. It may enter again inside.
    void enter()
    {
        depth_.store(depth_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        if (needs_fence_.load(std::memory_order_relaxed))
            std::atomic_thread_fence(std::memory_order_seq_cst);
        else
            std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    void leave()
    {
        depth_.store(depth_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
    }

    // Call it before a tracer is added.
    static void prepare();
    // After a tracer was removed: waits until no other thread is inside a call that may use it. The calling thread may
    // be, if Python runs in the middle of a call.
    static void wait_for_others();

    // Called before a fork, so that the child's list is consistent, and after it, in the parent and in the child. In the
    // child, forked() comes before release(): the other threads are gone.
    static void hold();
    static void release();
    static void forked();

  private:
    static inline std::atomic<bool> needs_fence_{true};

    std::atomic<uint32_t> depth_{0};
};

// Is inside as long as it lives.
class InOpCall
{
  public:
    InOpCall()
    {
        caller_.enter();
    }
    ~InOpCall()
    {
        caller_.leave();
    }
    InOpCall(const InOpCall &) = delete;
    InOpCall &operator=(const InOpCall &) = delete;

  private:
    OpCaller &caller_ = OpCaller::here();
};

} // namespace kpytrace
#endif
