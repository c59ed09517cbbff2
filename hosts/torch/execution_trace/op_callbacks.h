// op_callbacks.h: the operators that torch reports, passed to the observers that run. One pair of callbacks
// serves all of them; it is registered while there is one.
#ifndef KPTI_HOSTS_TORCH_EXECUTION_TRACE_OP_CALLBACKS_H
#define KPTI_HOSTS_TORCH_EXECUTION_TRACE_OP_CALLBACKS_H

#include "hosts/torch/execution_trace/observer.h"

namespace kpytrace
{

// From now on OBSERVER is told. False: as many are as can be.
bool begin_observing(const Observer &observer);

// OBSERVER is told no more, but of what is in flight.
void end_observing(const Observer &observer);

} // namespace kpytrace
#endif
