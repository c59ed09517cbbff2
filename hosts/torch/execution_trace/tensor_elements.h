// tensor_elements.h: the elements of integral tensors, for observers that record their range or a copy.
#ifndef KPTI_HOSTS_TORCH_EXECUTION_TRACE_TENSOR_ELEMENTS_H
#define KPTI_HOSTS_TORCH_EXECUTION_TRACE_TENSOR_ELEMENTS_H

#include <ATen/core/Tensor.h>

#include "abi/kpt.h"

namespace kpytrace
{

// Returns KPT_ELEMENTS_*.
uint32_t elements_of(at::ScalarType type);

// Returns the first element of a tensor in host memory, or null. GIVEN is the tensor's description.
const void *elements_here(const at::Tensor &tensor, const kpt_tensor &given);

// Returns a copy in host memory of all elements between the first and the last, so that the tensor's own
// strides are valid in it. Returns an undefined tensor if it cannot be copied. Runs operators, which are not
// recorded.
at::Tensor elements_copied(const at::Tensor &tensor, const kpt_tensor &given);

} // namespace kpytrace
#endif
