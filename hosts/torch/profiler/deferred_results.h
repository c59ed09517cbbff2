// deferred_results.h: passes calls to torch when the user accesses torch's result objects, not when a session
// ends. Most traces are only written to a file, and kpytrace writes the calls of a file itself.
#ifndef KPTI_HOSTS_TORCH_PROFILER_DEFERRED_RESULTS_H
#define KPTI_HOSTS_TORCH_PROFILER_DEFERRED_RESULTS_H

#include "hosts/torch/profiler/session_recording.h"

namespace kpytrace
{

// Adds the calls that RECORDER has not passed to torch yet to OBJECT, an object of torch's type
// _ProfilerResult. The GIL is held. Throws std::invalid_argument if OBJECT has another type.
void hand_over(Recorder &recorder, PyObject *object);

} // namespace kpytrace
#endif
