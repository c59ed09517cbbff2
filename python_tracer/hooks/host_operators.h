/* host_operators.h: records the host's operators and ranges in its threads' streams. A thread needs neither the GIL nor
 * Python: its first operator makes its stream. */
#ifndef KPTI_PYTHON_TRACER_HOOKS_HOST_OPERATORS_H
#define KPTI_PYTHON_TRACER_HOOKS_HOST_OPERATORS_H

#include "python_tracer/state/tracer_state.h"

/* Returns the function id of operators of this name, or 0 if there is no memory. */
uint32_t kpti_operator_name(kpt_str name, uint32_t scope);
/* Returns the token for the end, or 0 if OP is not recorded. HANDLE is the host's handle of TRACER. */
uint64_t kpti_operator_begin(kpti_tracer *tracer, kpt_handle handle, const kpt_operator *op);
void kpti_operator_end(kpti_tracer *tracer, uint64_t token);
/* As get_direct_ops of kpti_tracer_impl. */
kpti_operator_ops kpti_operator_direct_ops(kpti_operator_ops plugin);

#endif
