// torch_results.h: converts a recording to the objects from which torch builds its event tree.
#ifndef KPTI_HOSTS_TORCH_PROFILER_TORCH_RESULTS_H
#define KPTI_HOSTS_TORCH_PROFILER_TORCH_RESULTS_H

#include <memory>
#include <vector>

#include "hosts/torch/profiler/session_recording.h"

namespace kpytrace
{

using Results = std::vector<std::shared_ptr<torch::profiler::impl::Result>>;

// Returns the calls of a stopped recording, by start time.
Results results_of(Recorder &recorder, Wanted wanted);

} // namespace kpytrace
#endif
