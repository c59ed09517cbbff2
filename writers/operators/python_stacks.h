/* python_stacks.h: the different stacks of Python functions of a delivery, each once, and the function that each is shown
 * as: the innermost one that is the user's own (library_file.h), or the innermost one if there is none. */
#ifndef KPTI_WRITERS_OPERATORS_PYTHON_STACKS_H
#define KPTI_WRITERS_OPERATORS_PYTHON_STACKS_H

#include "abi/kpt_activity.h"
#include "core/base/u64_map.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_python_stacks {
    kpti_heap heap;
    struct kpti_stack_name *names; /* by index */
    uint32_t name_capacity;
    struct kpti_stack_node *nodes; /* 0 is the empty stack */
    uint32_t node_capacity;
    uint32_t node_count;
    kpti_u64_map node_of; /* by the caller's stack and the function */
} kpti_python_stacks;

void kpti_python_stacks_init(kpti_python_stacks *stacks, const kpti_heap *heap);
void kpti_python_stacks_free(kpti_python_stacks *stacks);

/* Takes a name of the delivery, without copying it. These return KPT_OK, KPT_E_MEMORY or KPT_E_LIMIT. */
kpt_status kpti_python_stacks_name(kpti_python_stacks *stacks, const kpt_name *name);
/* Sets *OUT to the stack of FUNCTION, which the stack CALLER has called. */
kpt_status kpti_python_stacks_find(kpti_python_stacks *stacks, uint32_t caller, uint32_t function,
                                   uint32_t *out);

/* Returns the index of the function that STACK, which is not empty, is shown as. */
uint32_t kpti_python_stacks_function(const kpti_python_stacks *stacks, uint32_t stack);
/* Returns the text of a name; empty if it was not taken. */
kpt_str kpti_python_stacks_text(const kpti_python_stacks *stacks, uint32_t name);

#ifdef __cplusplus
}
#endif
#endif
