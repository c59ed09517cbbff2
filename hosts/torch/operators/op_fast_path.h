// op_fast_path.h: the way of most operators from torch's callbacks to the tracer: one tracer, which receives no inputs, and
// an operator that the thread has called before. What it costs are the cache lines that it touches, since torch evicts
// them between two operators: those of the values in op_hot.h, of the thread's OpCaller, and of the plugin. Inline, for
// record_function_callbacks.cc.
#ifndef KPTI_HOSTS_TORCH_OPERATORS_OP_FAST_PATH_H
#define KPTI_HOSTS_TORCH_OPERATORS_OP_FAST_PATH_H

#include <ATen/record_function.h>

#include "hosts/torch/operators/op_caller.h"
#include "hosts/torch/operators/op_fields.h"
#include "hosts/torch/operators/op_tracers.h"

namespace kpytrace
{

// Returns false, and has recorded nothing, if this is another case.
[[gnu::always_inline]] inline bool
trace_begin_fast(OpCaller &caller, const at::RecordFunction &function, TracedOp::One &out)
{
    const InOpCall inside(caller);
    const OpTracer &slot = op_hot.tracers[0];
    const kpt_handle tracer = slot.tracer.load(std::memory_order_acquire);
    const char *const name = function.name();
    uint32_t number = caller.numbered(name).number_of(name, number_check(function));
    if (!tracer || op_hot.tracers_end.load(std::memory_order_relaxed) != 1) [[unlikely]]
        return false;
    out = {tracer, 0};
    if (!receives_here(slot)) return true;
    if (!number) [[unlikely]] {
        number = number_of_node(slot, tracer, function);
        if (!number) return false;
    }
    const kpt_operator op = operator_of(function, number);
    (void)slot.begin(tracer, &op, &out.token);
    return true;
}

inline void trace_end_fast(const at::RecordFunction &function)
{
    OpCaller &caller = OpCaller::here();
    const OpCaller::Open begun = caller.close(&function);
    if (!begun.token) return;
    const InOpCall inside(caller);
    end_for_tracer(begun.tracer, begun.token);
}

} // namespace kpytrace
#endif
