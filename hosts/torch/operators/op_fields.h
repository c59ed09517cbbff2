// op_fields.h: an operator as the plugin receives it. Inline, for op_tracers.cc and op_fast_path.h.
#ifndef KPTI_HOSTS_TORCH_OPERATORS_OP_FIELDS_H
#define KPTI_HOSTS_TORCH_OPERATORS_OP_FIELDS_H

#include <ATen/record_function.h>

#include "abi/kpt.h"
#include "hosts/torch/operators/op_hot.h"
#include "hosts/torch/session/thread_state.h"

namespace kpytrace
{

// Returns whether the tracer in SLOT receives operators of the calling thread.
inline bool receives_here(const OpTracer &slot)
{
    return !slot.mark || ThreadState::is_here(slot.mark);
}

// Returns what verifies that a number is still FUNCTION's.
inline uint32_t number_check(const at::RecordFunction &function)
{
    return static_cast<uint32_t>(op_hot.removals.load(std::memory_order_acquire) << 8) |
           static_cast<uint8_t>(function.scope());
}

inline kpt_operator operator_of(const at::RecordFunction &function, uint32_t number)
{
    kpt_operator op;
    op.struct_size = sizeof op;
    op.flags = op.scope = 0;
    op.name = number;
    op.text = {};
    op.sequence_plus_1 = function.seqNr() >= 0 ? static_cast<uint64_t>(function.seqNr()) + 1 : 0;
    op.forward_thread = function.forwardThreadId();
    op.record_id = function.handle();
    op.thread = function.threadId();
    op.inputs = {};
    return op;
}

} // namespace kpytrace
#endif
