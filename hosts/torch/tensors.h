// tensors.h: the numbers of tensors and allocations. torch assigns them when a session ends, from all of its
// events. Calls that torch receives later have tensors too, so all events are numbered again, by torch's
// rules, which its library does not export (calculateUniqueTensorIDs).
#ifndef KPTI_TORCH_TENSORS_H
#define KPTI_TORCH_TENSORS_H

#include "hosts/torch/results.h"

namespace kpytrace
{

// Numbers the tensors and allocations of EVENTS, which are sorted by start time.
void number_tensors(const Results &events);

} // namespace kpytrace
#endif
