// tensor_elements.h: the elements of integral tensors, for who wants their range or a copy.
#ifndef KPTI_HOSTS_TORCH_EXECUTION_TRACE_TENSOR_ELEMENTS_H
#define KPTI_HOSTS_TORCH_EXECUTION_TRACE_TENSOR_ELEMENTS_H

#include <ATen/core/Tensor.h>

#include "abi/kpt.h"

namespace kpytrace
{

// KPT_ELEMENTS_*.
uint32_t elements_of(at::ScalarType type);

// The first element of a tensor that lies in host memory, GIVEN being its description; else null.
const void *elements_here(const at::Tensor &tensor, const kpt_tensor &given);

// A copy, in host memory, of all between the first element and the last, so that the tensor's own strides
// hold in it; undefined where there is none to be had. Runs operators, unseen.
at::Tensor elements_copied(const at::Tensor &tensor, const kpt_tensor &given);

} // namespace kpytrace
#endif
