/* operator_walk_state.h: what a walk over operators keeps. Only operator_walk.c uses this. */
#ifndef KPTI_WRITERS_OPERATORS_OPERATOR_WALK_STATE_H
#define KPTI_WRITERS_OPERATORS_OPERATOR_WALK_STATE_H

#include "writers/operators/operator_walk.h"

typedef struct kpti_walked_name {
    kpt_str
        shown; /* the tracer owns the text of a function; that of a range ends with the delivery */
    uint32_t is_library;
} walked_name;

typedef struct kpti_stack_node {
    uint32_t shown;      /* the function that the stack is shown as */
    uint32_t is_library; /* all its functions are a library's */
} stack_node;

typedef struct kpti_forward {
    int64_t start_ns;
    uint32_t thread;
    uint32_t stack;
    uint32_t link; /* index + 1; 0: no node has its number yet */
} forward;

/* The Python functions that are open on a thread. A stack gets a node only if an operator begins in it. */
typedef struct open_function {
    uint32_t name;
    uint32_t stack; /* valid below the thread's known_depth */
} open_function;

typedef struct open_operator {
    kpti_walked_operator op;
    uint64_t id; /* of a range: its number */
    uint64_t inside_ns;
    uint64_t gpu_inside_ns;
    uint32_t
        range; /* of a range in which something was launched: its number among the launches' ranges */
    int has_number; /* a sequence number */
} open_operator;

typedef struct kpti_walked_thread {
    uint64_t host_number; /* the host's number of the thread; 0: not known */
    uint64_t os_tid;
    kpti_gpu_launch *launch; /* the next one */
    kpti_gpu_launch *launches_end;
    open_function *functions;
    uint32_t function_capacity;
    uint32_t depth;
    uint32_t known_depth; /* functions below this depth have a stack */
    open_operator *operators;
    uint32_t operator_capacity;
    uint32_t operator_count;
} walked_thread;

#endif
