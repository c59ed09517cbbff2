/* event_flops.h: how many floating point operations an operator needs, by torch's formulas. No Python, no GIL. */
#ifndef KPTI_TORCH_EVENT_FLOPS_H
#define KPTI_TORCH_EVENT_FLOPS_H

#include "abi/kpt_base.h"

/* Returns the number for the operator NAME with the inputs in BYTES (kpt_inputs.h), or 0 if torch has no formula for it. */
uint64_t kpti_event_flops(kpt_str name, kpt_str bytes);

#endif
