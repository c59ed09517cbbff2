// described.h: a tensor as the plugin takes it.
#ifndef KPTI_TORCH_DESCRIBED_H
#define KPTI_TORCH_DESCRIBED_H

#include <c10/core/TensorImpl.h>

#include "abi/kpt.h"

namespace kpytrace
{

// All of TO but its elements; sizes and strides are the tensor's own. Throws std::bad_alloc.
void describe(c10::TensorImpl &tensor, kpt_tensor &to);

} // namespace kpytrace
#endif
