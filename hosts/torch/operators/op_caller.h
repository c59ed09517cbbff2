// op_caller.h: a thread that may be inside a call of a tracer. Entering is a few stores, without an atomic addition:
// the thread that removes a tracer makes all others see each other's stores instead (membarrier), which is slow and rare.
#ifndef KPTI_HOSTS_TORCH_OPERATORS_OP_CALLER_H
#define KPTI_HOSTS_TORCH_OPERATORS_OP_CALLER_H

#include <array>
#include <atomic>
#include <cstdint>

#include "hosts/torch/common/hash.h"
#include "hosts/torch/common/thread_local_ptr.h"
#include "hosts/torch/operators/op_hot.h"
#include "hosts/torch/operators/op_inputs.h"

namespace kpytrace
{

class alignas(64) OpCaller
{
  public:
    // The plugin's numbers for two operators, by the address of torch's text of their names. Two, since some of the
    // operators of a step have the same hash, and one would displace the other each time. Small, so that the operators of
    // a step stay in the processor's cache; a pair is in one cache line.
    class alignas(32) Numbered
    {
      public:
        // CHECKED verifies that the name at the address is still the same, and that the scope is. Returns the number, or
        // 0 if there is none.
        uint32_t number_of(const char *name, uint32_t checked) const
        {
            if (newest_.key == name && newest_.check == checked) return newest_.number;
            return other_.key == name && other_.check == checked ? other_.number : 0;
        }
        void keep(const char *name, uint32_t number, uint32_t checked)
        {
            if (newest_.key != name) other_ = newest_;
            newest_ = {name, number, checked};
        }

      private:
        struct One {
            const char *key = nullptr;
            uint32_t number = 0;
            uint32_t check = 0;
        };
        One newest_;
        One other_;
    };

    // An operator that a tracer records, from its begin to its end.
    struct Open {
        const void *function; // torch's RecordFunction
        kpt_handle tracer;
        uint64_t token;
    };

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
        const uint32_t depth = depth_.load(std::memory_order_relaxed);
        entries_.store(entries_.load(std::memory_order_relaxed) + !depth,
                       std::memory_order_release);
        depth_.store(depth + 1, std::memory_order_relaxed);
        if (op_hot.needs_fence.load(std::memory_order_relaxed)) [[unlikely]]
            std::atomic_thread_fence(std::memory_order_seq_cst);
        else
            std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    void leave()
    {
        depth_.store(depth_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
    }

    Numbered &numbered(const char *key)
    {
        return numbered_[address_hash(key) >> (64 - NUMBERED_BITS)];
    }

    // Operators of torch's dispatcher begin and end within a call of C++, so the innermost one ends first. Others are
    // searched for: greenlets have stacks of their own.
    // Returns false if there are too many.
    bool open(const Open &begun)
    {
        if (open_count_ == MAX_OPEN) return false;
        open_[open_count_++] = begun;
        return true;
    }
    // Removes the operator of FUNCTION and returns it. Without one, its tracer is 0.
    Open close(const void *function)
    {
        const uint32_t last = open_count_ - 1;
        if (open_count_ && open_[last].function == function) [[likely]]
            return open_[open_count_ = last];
        return close_outer(function);
    }

    OpInputs &inputs()
    {
        return inputs_;
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
    Open close_outer(const void *function);

    enum { NUMBERED_BITS = 7, MAX_OPEN = 64 };

    std::atomic<uint32_t> depth_{0};
    std::atomic<uint32_t> entries_{0}; // how often it entered from outside
    uint32_t open_count_ = 0;
    std::array<Open, MAX_OPEN> open_; // the innermost last; the first open_count_ are valid
    std::array<Numbered, 1 << NUMBERED_BITS> numbered_;
    OpInputs inputs_;
};

// Is inside as long as it lives.
class InOpCall
{
  public:
    explicit InOpCall(OpCaller &caller) : caller_(caller)
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
    OpCaller &caller_;
};

} // namespace kpytrace
#endif
