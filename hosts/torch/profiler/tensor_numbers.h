// tensor_numbers.h: the numbers of tensors and allocations. torch assigns them when a session ends, from all of
// its events. Calls that torch receives later have tensors too, so all events are numbered again, by torch's
// rules, which its library does not export (calculateUniqueTensorIDs).
#ifndef KPTI_HOSTS_TORCH_PROFILER_TENSOR_NUMBERS_H
#define KPTI_HOSTS_TORCH_PROFILER_TENSOR_NUMBERS_H

#include "hosts/torch/profiler/torch_results.h"

namespace kpytrace
{

// Numbers the tensors and allocations of EVENTS, which are sorted by start time.
void number_tensors(const Results &events);

} // namespace kpytrace
#endif
