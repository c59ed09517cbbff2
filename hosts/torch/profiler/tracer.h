// tracer.h: kpytrace as torch's Python tracer: the factory that torch calls, and the recording of the last
// session.
#ifndef KPTI_HOSTS_TORCH_PROFILER_TRACER_H
#define KPTI_HOSTS_TORCH_PROFILER_TRACER_H

#include "hosts/torch/profiler/session_recording.h"

namespace kpytrace
{

// Makes kpytrace the tracer of later sessions. The GIL is held here and below.
void install(std::shared_ptr<const Settings> settings);

// Makes STOCK the tracer again. If it is null, Python is not traced.
void uninstall(torch::profiler::impl::python_tracer::MakeFn stock);

// Takes the recording of the session that ended last. Returns null if there is none, or if it was taken
// already.
std::shared_ptr<Recorder> take_recording();

} // namespace kpytrace
#endif
