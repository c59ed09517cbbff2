// tracer.h: kpytrace as torch's Python tracer: the factory that torch calls, and the recording of the last
// session.
#ifndef KPTI_HOSTS_TORCH_PROFILER_TRACER_H
#define KPTI_HOSTS_TORCH_PROFILER_TRACER_H

#include "hosts/torch/profiler/session_recording.h"

namespace kpytrace
{

// Makes kpytrace the tracer of sessions to come. The GIL is held, as below.
void install(std::shared_ptr<const Settings> settings);

// Makes STOCK the tracer again; null: Python is not traced.
void uninstall(torch::profiler::impl::python_tracer::MakeFn stock);

// Takes the recording of the session that ended last; null: there is none, or it was taken already.
std::shared_ptr<Recorder> take_recording();

} // namespace kpytrace
#endif
