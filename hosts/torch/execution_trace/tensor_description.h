// tensor_description.h: a tensor as the plugin takes it.
#ifndef KPTI_HOSTS_TORCH_EXECUTION_TRACE_TENSOR_DESCRIPTION_H
#define KPTI_HOSTS_TORCH_EXECUTION_TRACE_TENSOR_DESCRIPTION_H

#include <c10/core/TensorImpl.h>

#include "abi/kpt.h"

namespace kpytrace
{

// All of TO but its elements; sizes and strides are the tensor's own. Throws std::bad_alloc.
void describe(c10::TensorImpl &tensor, kpt_tensor &to);

} // namespace kpytrace
#endif
