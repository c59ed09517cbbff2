// collectives.h: what torch tells of a collective beside its operator, as the trace has it.
#ifndef KPTI_TORCH_COLLECTIVES_H
#define KPTI_TORCH_COLLECTIVES_H

#include "hosts/torch/values.h"

namespace kpytrace
{

// Of the collective that this thread is in, as attributes that hold as long as VALUES' scope.
at::ArrayRef<kpt_attr> collective_attrs(Values &values);

} // namespace kpytrace
#endif
