// collectives.h: the data on a collective that torch provides beside its operator, as attributes of the trace.
#ifndef KPTI_HOSTS_TORCH_EXECUTION_TRACE_COLLECTIVES_H
#define KPTI_HOSTS_TORCH_EXECUTION_TRACE_COLLECTIVES_H

#include "hosts/torch/execution_trace/ivalues.h"

namespace kpytrace
{

// Returns the attributes of the collective that this thread is in. They are valid as long as VALUES' scope.
at::ArrayRef<kpt_attr> collective_attrs(Values &values);

} // namespace kpytrace
#endif
