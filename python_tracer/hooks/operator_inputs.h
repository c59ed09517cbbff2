/* operator_inputs.h: writes the inputs of an operator or a range (kpt_inputs.h) into its thread's stream. Inputs that the chunk
 * has already are referred to, so a step that repeats takes 8 bytes for each operator. */
#ifndef KPTI_PYTHON_TRACER_HOOKS_OPERATOR_INPUTS_H
#define KPTI_PYTHON_TRACER_HOOKS_OPERATOR_INPUTS_H

#include "python_tracer/state/stream_state.h"

/* Returns how many events INPUTS takes at most. */
uint32_t kpti_inputs_space(kpt_str inputs);
/* Appends INPUTS behind the ENTER of their operator, or behind the name of their range. FORMAT is what the chunk then has.
 * There must be space, and the calling thread owns STREAM. If there is no memory to find them again, equal inputs are
 * repeated. */
void kpti_inputs_append(kpti_stream *stream, kpt_str inputs, uint32_t format);

#endif
