// torch_results.h: a recording as the objects that torch builds its event tree from.
#ifndef KPTI_HOSTS_TORCH_PROFILER_TORCH_RESULTS_H
#define KPTI_HOSTS_TORCH_PROFILER_TORCH_RESULTS_H

#include <memory>
#include <vector>

#include "hosts/torch/profiler/session_recording.h"

namespace kpytrace
{

using Results = std::vector<std::shared_ptr<torch::profiler::impl::Result>>;

// The calls of a stopped recording, by start time.
Results results_of(Recorder &recorder, Wanted wanted);

} // namespace kpytrace
#endif
