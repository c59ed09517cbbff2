// op_tracers.h: the tracers that record torch's operators among their calls. They are tracers of any host in the process
// that uses the same plugin, such as the standalone one.
#ifndef KPTI_HOSTS_TORCH_OPERATORS_OP_TRACERS_H
#define KPTI_HOSTS_TORCH_OPERATORS_OP_TRACERS_H

#include <ATen/record_function.h>

#include <array>

#include "abi/kpt.h"
#include "hosts/torch/operators/op_hot.h"

namespace kpytrace
{

// An operator that has begun, with its token for each tracer that records it.
struct TracedOp {
    struct One {
        kpt_handle tracer;
        uint64_t token;
    };
    uint32_t count = 0;
    std::array<One, MAX_OP_TRACERS> tokens; // the first COUNT are valid
};

// From now on TRACER receives operators, with their inputs if WANTS_INPUTS, of the threads that have MARK, which outlives
// this, or of all if that is null. Returns false if it can't, or if there are as many tracers as possible.
bool add_op_tracer(const kpt_tracer &tracer, bool wants_inputs, const ThreadState *mark);
// TRACER receives no more operators, and no thread is inside a call for it.
void remove_op_tracer(kpt_handle tracer);
bool has_op_tracers();
// Returns whether a tracer receives inputs.
bool op_tracers_want_inputs();
// In the child of a fork, the parent's tracers have ended.
void op_tracers_forked();

// Returns the number of an autograd node, or of a function of its engine, whose name does not stay where it is. Returns 0
// if FUNCTION is another one.
uint32_t number_of_node(const OpTracer &slot, kpt_handle tracer,
                        const at::RecordFunction &function);

// Passes the begin or the end of an operator to the tracers. HAS_INPUTS: FUNCTION has its inputs.
void trace_begin(const at::RecordFunction &function, TracedOp &out, bool has_inputs);
void trace_end(const TracedOp &op);

} // namespace kpytrace
#endif
