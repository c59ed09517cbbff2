// kineto_child.h: kpytrace as a child profiler of Kineto: traces that begin outside of torch's profiler (on
// demand, by a daemon or a signal) have Python calls too.
#ifndef KPTI_HOSTS_TORCH_PROFILER_KINETO_CHILD_H
#define KPTI_HOSTS_TORCH_PROFILER_KINETO_CHILD_H

namespace kpytrace
{

// Once per process: Kineto keeps it for good, and asks installed() at each trace.
void register_child_profiler();

} // namespace kpytrace
#endif
