// torch_session.h: what a session of torch's profiler does with calls.
#ifndef KPTI_HOSTS_TORCH_PROFILER_TORCH_SESSION_H
#define KPTI_HOSTS_TORCH_PROFILER_TORCH_SESSION_H

#include <torch/csrc/profiler/collection.h>

namespace kpytrace
{

// Whether the calls of QUEUE's session can be given to torch later (deferred_results.h). They cannot where torch itself
// writes the stacks of operators into the file (verbose), nor where no user can ask later (on demand).
bool can_wait(torch::profiler::impl::RecordQueue &queue);

// Whether torch lists calls among its events, and not only in its tree. torch 2.11 does not.
bool lists_calls();

} // namespace kpytrace
#endif
