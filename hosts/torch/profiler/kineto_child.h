// kineto_child.h: kpytrace as a child profiler of Kineto, so that traces that begin outside torch's profiler
// (on demand, by a daemon or a signal) have Python calls too.
#ifndef KPTI_HOSTS_TORCH_PROFILER_KINETO_CHILD_H
#define KPTI_HOSTS_TORCH_PROFILER_KINETO_CHILD_H

namespace kpytrace
{

// Call it once per process. Kineto keeps the profiler for ever, which checks installed() at each trace.
void register_child_profiler();

} // namespace kpytrace
#endif
