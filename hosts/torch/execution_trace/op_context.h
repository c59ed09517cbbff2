// op_context.h: an operator between its begin and its end, and a thread's state for reporting operators. Inline, for
// record_function_callbacks.cc only.
#ifndef KPTI_HOSTS_TORCH_EXECUTION_TRACE_OP_CONTEXT_H
#define KPTI_HOSTS_TORCH_EXECUTION_TRACE_OP_CONTEXT_H

#include <ATen/record_function.h>
#include <cxxabi.h>

#include <array>
#include <utility>

#include "hosts/torch/common/thread_local_ptr.h"
#include "hosts/torch/execution_trace/ivalues.h"
#include "hosts/torch/execution_trace/plugin_observer.h"
#include "hosts/torch/execution_trace/tape_writer.h"
#include "hosts/torch/operators/op_tracers.h"

namespace kpytrace
{

enum { MAX_OBSERVERS = 8 };

// An operator that has begun, with its number for each observer that records it.
struct OpContext : at::ObserverContext {
    struct One {
        const kpt_observer *observer;
        uint64_t id;
    };

    [[gnu::hot]] ~OpContext() override {}

    // These use the thread's list of spare blocks.
    static void *operator new(size_t size);
    static void operator delete(void *block);

    uint32_t outputs = 0;
    unsigned exceptions = 0;
    const kpt_tape *tape = nullptr; // the tape with the first observer's record
    TracedOp traced;
    uint32_t count = 0;
    std::array<One, MAX_OBSERVERS> numbers; // the first COUNT are valid
};

// The per-thread state for reporting operators.
class Reporter
{
  public:
    static Reporter &here()
    {
        return ThreadLocalPtr<Reporter>::here();
    }

    Reporter() {}
    ~Reporter()
    {
        while (spare_)
            ::operator delete(std::exchange(spare_, spare_->next));
    }
    Reporter(const Reporter &) = delete;
    Reporter &operator=(const Reporter &) = delete;

    // Returns the tape for OBSERVER's operators, or null if there is none.
    Tape *tape_for(const PluginObserver &observer)
    {
        if (&observer != tape_for_) {
            tape_.set(observer.tape());
            tape_for_ = &observer;
        }
        return tape_.get() ? &tape_ : nullptr;
    }
    // The tape is looked up again at the next operator, since it may be a different one, as after a fork.
    void forget_tape()
    {
        tape_for_ = nullptr;
    }
    Tape &tape()
    {
        return tape_;
    }
    Values &values()
    {
        return values_;
    }

    // std::uncaught_exceptions(), read from the C++ ABI's data of this thread. The function itself would take
    // calls into two libraries.
    unsigned uncaught_exceptions() const
    {
        return exceptions_->uncaught;
    }

    // Allocates memory for an OpContext. The list of spares has a limit: if operators begin on one thread and end on
    // another, the list of the latter would grow without end.
    void *take(size_t size)
    {
        if (!spare_) return ::operator new(size);
        spare_count_--;
        return std::exchange(spare_, spare_->next);
    }
    void release(void *block)
    {
        if (spare_count_ == MAX_SPARE) return ::operator delete(block);
        spare_count_++;
        spare_ = new (block) Spare{spare_};
    }

  private:
    enum { MAX_SPARE = 64 };

    struct Spare {
        Spare *next;
    };
    struct Exceptions { // __cxa_eh_globals
        void *caught;
        unsigned uncaught;
    };

    const Exceptions *const exceptions_ =
        reinterpret_cast<const Exceptions *>(abi::__cxa_get_globals());
    const PluginObserver *tape_for_ = nullptr;
    Spare *spare_ = nullptr;
    size_t spare_count_ = 0;
    Tape tape_;
    Values values_;
};

[[gnu::hot]] inline void *OpContext::operator new(size_t size)
{
    return Reporter::here().take(size);
}

[[gnu::hot]] inline void OpContext::operator delete(void *block)
{
    Reporter::here().release(block);
}

} // namespace kpytrace
#endif
