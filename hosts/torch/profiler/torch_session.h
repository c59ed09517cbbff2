// torch_session.h: how a session of torch's profiler uses calls.
#ifndef KPTI_HOSTS_TORCH_PROFILER_TORCH_SESSION_H
#define KPTI_HOSTS_TORCH_PROFILER_TORCH_SESSION_H

#include <torch/csrc/profiler/collection.h>

namespace kpytrace
{

// Returns true if the calls of QUEUE's session can be passed to torch later (deferred_results.h). They cannot
// if torch itself writes the stacks of operators into the file (verbose), or if no user can access them later
// (on demand).
bool can_wait(torch::profiler::impl::RecordQueue &queue);

// Returns true if torch lists calls among its events, and not only in its tree. torch 2.11 does not.
bool lists_calls();

} // namespace kpytrace
#endif
