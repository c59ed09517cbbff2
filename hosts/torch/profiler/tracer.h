// tracer.h: torch's Python tracer, by kpytrace: the factory that torch calls, what it is set to, and
// the recording of the last session.
#ifndef KPTI_HOSTS_TORCH_PROFILER_TRACER_H
#define KPTI_HOSTS_TORCH_PROFILER_TRACER_H

#include "hosts/torch/profiler/session_recording.h"

namespace kpytrace
{

// Makes kpytrace the tracer of sessions to come. The GIL is held, as below.
void install(std::shared_ptr<const Settings> settings);

// Makes STOCK the tracer again; null: nobody, and Python is not traced.
void uninstall(torch::profiler::impl::python_tracer::MakeFn stock);

// The settings; null: not installed. Any thread.
std::shared_ptr<const Settings> installed();

// Whether a session's tracer lives now. Any thread.
bool tracing();

// The recording of the session that ended last, once; null: there is none, or it is taken.
std::shared_ptr<Recorder> take_recording();

} // namespace kpytrace
#endif
