// tensors.h: the numbers of tensors. torch numbers those of operators when a session ends; what is
// handed over later has tensors too, and the same memory must have the same number.
#ifndef KPTI_TORCH_TENSORS_H
#define KPTI_TORCH_TENSORS_H

#include "results.h"

namespace kpytrace
{

// Numbers the tensors of modules and optimizers among EVENTS, which are by start time.
void number_tensors(const Results &events);

} // namespace kpytrace
#endif
