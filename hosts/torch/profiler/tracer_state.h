// tracer_state.h: whether kpytrace is torch's tracer, with which settings, and whether a session runs. Any
// thread may call.
#ifndef KPTI_HOSTS_TORCH_PROFILER_TRACER_STATE_H
#define KPTI_HOSTS_TORCH_PROFILER_TRACER_STATE_H

#include <memory>

#include "hosts/torch/profiler/session_recording.h"

namespace kpytrace
{

// Returns the settings of later sessions, or null if kpytrace is not installed.
std::shared_ptr<const Settings> installed();
void set_installed(std::shared_ptr<const Settings> settings);

// Returns true if a session's tracer exists now.
bool tracing();
// Called when a session's tracer is made, and when it is destroyed.
void begin_tracing();
void end_tracing();

} // namespace kpytrace
#endif
