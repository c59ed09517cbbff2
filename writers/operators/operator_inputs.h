/* operator_inputs.h: the inputs of an operator (kpt_inputs.h) as JSON, with the fields and texts that torch's profiler
 * writes for them. Nothing here allocates. */
#ifndef KPTI_WRITERS_OPERATORS_OPERATOR_INPUTS_H
#define KPTI_WRITERS_OPERATORS_OPERATOR_INPUTS_H

#include <stddef.h>

#include "abi/kpt_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Most bytes of the JSON for SIZE bytes of inputs. */
static inline size_t kpti_inputs_json_bytes(uint64_t size)
{
    return 256 + 32 * (size_t)size;
}

/* Writes the values, types, strides and sizes of INPUTS: ",\"Concrete Inputs\":[…],…", the same number of each.
 * Returns the end. The output is valid JSON for any bytes. */
char *kpti_inputs_json(char *at, kpt_str inputs);

/* Returns the name that C++ has for the elements of a tensor, by torch's number, or NULL if it is not known. */
const char *kpti_input_type_name(uint32_t type);

#ifdef __cplusplus
}
#endif
#endif
