// event_tree.h: rebuilds torch's event tree with calls that were missing when torch built it.
#ifndef KPTI_HOSTS_TORCH_PROFILER_EVENT_TREE_H
#define KPTI_HOSTS_TORCH_PROFILER_EVENT_TREE_H

#include "hosts/torch/profiler/torch_results.h"

namespace kpytrace
{

// Inserts ADDED among the events below ROOTS, and returns all events by start time. Parents are found by
// torch's rules. ROOTS becomes the list of events without a parent.
Results add_to_tree(Results &roots, const Results &added);

} // namespace kpytrace
#endif
