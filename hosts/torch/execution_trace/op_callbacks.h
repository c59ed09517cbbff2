// op_callbacks.h: passes the operators that torch reports to the running observers. One pair of callbacks
// serves all observers. It is registered while at least one runs.
#ifndef KPTI_HOSTS_TORCH_EXECUTION_TRACE_OP_CALLBACKS_H
#define KPTI_HOSTS_TORCH_EXECUTION_TRACE_OP_CALLBACKS_H

#include "hosts/torch/execution_trace/plugin_observer.h"

namespace kpytrace
{

// From now on OBSERVER receives operators. Returns false if there are as many observers as possible.
bool begin_observing(const PluginObserver &observer);

// OBSERVER receives no more operators, except those in flight.
void end_observing(const PluginObserver &observer);

} // namespace kpytrace
#endif
