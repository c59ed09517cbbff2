// tracer_state.h: whether kpytrace is torch's tracer, with which settings, and whether a session runs. Any thread.
#ifndef KPTI_HOSTS_TORCH_PROFILER_TRACER_STATE_H
#define KPTI_HOSTS_TORCH_PROFILER_TRACER_STATE_H

#include <memory>

#include "hosts/torch/profiler/session_recording.h"

namespace kpytrace
{

// The settings of sessions to come; null: not installed.
std::shared_ptr<const Settings> installed();
void set_installed(std::shared_ptr<const Settings> settings);

// Whether a session's tracer exists now.
bool tracing();
// A session's tracer is made; it is destroyed.
void begin_tracing();
void end_tracing();

} // namespace kpytrace
#endif
