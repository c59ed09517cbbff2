// record_function_callbacks.h: passes the operators that torch reports to the running observers, and to the tracers that record
// operators (op_tracers.h). One pair of callbacks serves all of them. It is registered while at least one runs. It asks
// torch for the inputs and outputs only if one of them needs these, since they cost more than the rest.
#ifndef KPTI_HOSTS_TORCH_EXECUTION_TRACE_RECORD_FUNCTION_CALLBACKS_H
#define KPTI_HOSTS_TORCH_EXECUTION_TRACE_RECORD_FUNCTION_CALLBACKS_H

#include "abi/kpt.h"
#include "hosts/torch/execution_trace/plugin_observer.h"

namespace kpytrace
{

class ThreadState;

// From now on OBSERVER receives operators. Returns false if there are as many observers as possible.
bool begin_observing(const PluginObserver &observer);

// OBSERVER receives no more operators, except those in flight.
void end_observing(const PluginObserver &observer);

// The same for a tracer, which receives operators of the threads that have MARK, or of all if that is null. When
// end_tracing_ops returns, no thread is inside a call for TRACER.
bool begin_tracing_ops(const kpt_tracer &tracer, bool with_inputs, const ThreadState *mark);
void end_tracing_ops(kpt_handle tracer);

} // namespace kpytrace
#endif
