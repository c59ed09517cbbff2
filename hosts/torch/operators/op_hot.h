// op_hot.h: the values of the process that the callbacks read for each operator, together in as few cache lines as
// possible: torch evicts them between two operators.
#ifndef KPTI_HOSTS_TORCH_OPERATORS_OP_HOT_H
#define KPTI_HOSTS_TORCH_OPERATORS_OP_HOT_H

#include <array>
#include <atomic>
#include <cstdint>

#include "abi/kpt.h"

namespace kpytrace
{

class ThreadState;

enum { MAX_OP_TRACERS = 4 };

// What a pair of callbacks asks torch for.
enum class OpDetail : uint8_t {
    NONE,   // there is no pair
    NAMES,  // for tracers only
    INPUTS, // the same, with inputs
    VALUES  // also the inputs and outputs, and numbers of operators
};

// A tracer that receives operators, with its plugin's functions. A thread reads them while it is an OpCaller that is
// inside, and they change only while no thread is.
struct OpTracer {
    std::atomic<kpt_handle> tracer{0}; // 0: the slot is free
    decltype(kpt_tracer_ops::begin_operator) begin = nullptr;
    decltype(kpt_tracer_ops::end_operator) end = nullptr;
    decltype(kpt_tracer_ops::name_operator) name = nullptr;
    const ThreadState *mark = nullptr; // of the threads whose operators it receives; null: of all
};

struct alignas(64) OpHot {
    // The pair of callbacks in use (record_function_callbacks.cc). While one pair replaces another, both are registered.
    std::atomic<OpDetail> detail{OpDetail::NONE};
    std::atomic<bool> needs_fence{true};  // of op_caller.h
    std::atomic<uint8_t> with_inputs{0};  // the slots whose tracers receive inputs, as bits
    std::atomic<uint32_t> tracers_end{0}; // slots from here on are free
    // Counts the operators that were removed from torch's dispatcher. After a removal, the address of the removed name
    // may belong to another operator.
    std::atomic<uint64_t> removals{0};
    std::array<OpTracer, MAX_OP_TRACERS> tracers;
};

inline constinit OpHot op_hot;

// Ends an operator, unless TRACER was removed meanwhile. The thread is inside.
inline void end_for_tracer(kpt_handle tracer, uint64_t token)
{
    for (const OpTracer &slot : op_hot.tracers) {
        if (slot.tracer.load(std::memory_order_acquire) != tracer) continue;
        (void)slot.end(tracer, token);
        break;
    }
}

} // namespace kpytrace
#endif
