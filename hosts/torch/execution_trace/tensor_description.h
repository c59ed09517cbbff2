// tensor_description.h: describes a tensor for the plugin.
#ifndef KPTI_HOSTS_TORCH_EXECUTION_TRACE_TENSOR_DESCRIPTION_H
#define KPTI_HOSTS_TORCH_EXECUTION_TRACE_TENSOR_DESCRIPTION_H

#include <c10/core/TensorImpl.h>

#include "abi/kpt.h"

namespace kpytrace
{

// Fills in all of TO but its elements. Sizes and strides point into the tensor. Throws std::bad_alloc.
void describe(c10::TensorImpl &tensor, kpt_tensor &to);

} // namespace kpytrace
#endif
