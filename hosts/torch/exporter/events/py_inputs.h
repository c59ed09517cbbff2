/* py_inputs.h: the inputs of an operator (kpt_inputs.h) as the lists and dictionaries that torch's events have. The GIL is
 * held. */
#ifndef KPTI_TORCH_PY_INPUTS_H
#define KPTI_TORCH_PY_INPUTS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "abi/kpt_base.h"

typedef enum kpti_input_list {
    KPTI_INPUT_SHAPES,   /* a list of tensors is [] */
    KPTI_INPUT_TYPES,    /* names of types */
    KPTI_INPUT_VALUES,   /* numbers, lists of numbers, None */
    KPTI_INPUT_SIZES,    /* a list of tensors has a list for each */
    KPTI_INPUT_STRIDES,  /* the same */
    KPTI_INPUT_KEYWORDS, /* not a list, but a dictionary of the values by name */
    KPTI_INPUT_LISTS
} kpti_input_list;

/* Returns a new object, or NULL with an exception. */
PyObject *kpti_py_inputs(kpt_str inputs, kpti_input_list what);

#endif
