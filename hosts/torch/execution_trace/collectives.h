// collectives.h: what torch tells of a collective beside its operator, as the trace has it.
#ifndef KPTI_HOSTS_TORCH_EXECUTION_TRACE_COLLECTIVES_H
#define KPTI_HOSTS_TORCH_EXECUTION_TRACE_COLLECTIVES_H

#include "hosts/torch/execution_trace/ivalues.h"

namespace kpytrace
{

// Of the collective that this thread is in, as attributes that hold as long as VALUES' scope.
at::ArrayRef<kpt_attr> collective_attrs(Values &values);

} // namespace kpytrace
#endif
