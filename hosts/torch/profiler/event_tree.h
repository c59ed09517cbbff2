// event_tree.h: torch's event tree, made again with calls that were not there when torch made it.
#ifndef KPTI_HOSTS_TORCH_PROFILER_EVENT_TREE_H
#define KPTI_HOSTS_TORCH_PROFILER_EVENT_TREE_H

#include "hosts/torch/profiler/torch_results.h"

namespace kpytrace
{

// Puts ADDED among what is below ROOTS, and returns all of it by start time. Parents are found as torch
// finds them. ROOTS become those that have none.
Results add_to_tree(Results &roots, const Results &added);

} // namespace kpytrace
#endif
