// observed.h: the operators that torch reports, passed to the observers that run. One pair of callbacks
// serves all of them; it is registered while there is one.
#ifndef KPTI_TORCH_OBSERVED_H
#define KPTI_TORCH_OBSERVED_H

#include "observer.h"

namespace kpytrace
{

// From now on OBSERVER is told. False: as many are as can be.
bool begin_observing(const Observer &observer);

// No operator that begins after this is told to OBSERVER; ends may be, until is_observing says no.
void end_observing(const Observer &observer);

// Whether a callback runs, on any thread.
bool is_observing();

} // namespace kpytrace
#endif
