// deferred_results.h: calls that torch gets when somebody asks for its objects, not when a session ends: most
// traces are only written to a file, and that has the calls from us.
#ifndef KPTI_HOSTS_TORCH_PROFILER_DEFERRED_RESULTS_H
#define KPTI_HOSTS_TORCH_PROFILER_DEFERRED_RESULTS_H

#include "hosts/torch/profiler/session_recording.h"

namespace kpytrace
{

// Whether the session of QUEUE can be served so. Not where torch itself writes stacks of operators
// into the file (verbose), nor where nobody can ask later (on demand).
bool can_wait(torch::profiler::impl::RecordQueue &queue);

// Whether torch has calls among its events, not only in its tree: 2.11 does not.
bool lists_calls();

// Puts what RECORDER still owes to torch into RESULT, an object of torch's _ProfilerResult. The GIL is
// held. Throws if that is none.
void hand_over(Recorder &recorder, PyObject *result);

} // namespace kpytrace
#endif
