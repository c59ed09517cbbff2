// results.h: a recording as the objects that torch builds its event tree from.
#ifndef KPTI_TORCH_RESULTS_H
#define KPTI_TORCH_RESULTS_H

#include <memory>
#include <vector>

#include "hosts/torch/recorder.h"

namespace kpytrace
{

using Results = std::vector<std::shared_ptr<torch::profiler::impl::Result>>;

// The calls of a stopped recording, by start time.
Results results_of(Recorder &recorder, Wanted wanted);

} // namespace kpytrace
#endif
