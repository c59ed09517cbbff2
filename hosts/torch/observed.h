// observed.h: the operators that torch reports, passed to the observers that run. One pair of callbacks
// serves all of them; it is registered while there is one.
#ifndef KPTI_TORCH_OBSERVED_H
#define KPTI_TORCH_OBSERVED_H

#include "hosts/torch/observer.h"

namespace kpytrace
{

// From now on OBSERVER is told. False: as many are as can be.
bool begin_observing(const Observer &observer);

// OBSERVER is told no more, but of what is in flight.
void end_observing(const Observer &observer);

} // namespace kpytrace
#endif
