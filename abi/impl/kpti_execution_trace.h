/* kpti_execution_trace.h: the observer that writes execution traces, and the interface through
 * which it gets Python's stacks from the backend that it is linked into. The observer itself does
 * not use Python. */
#ifndef KPTI_EXECUTION_TRACE_H
#define KPTI_EXECUTION_TRACE_H

#include "kpti_impl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A stack is a number, as in tracebacks: a location on top of another stack; 0 is the empty stack.
 * A number stays valid between begin and end. Every function may be called on any thread, without a
 * lock of the caller, and does not wait for the GIL. */
typedef struct kpti_stack_source {
    void (*begin)(void);
    void (*end)(void);
    /* Returns the calling thread's stack, or 0 if the thread has none or it cannot be read now.
     * *GATHERED is the token of an earlier gather if the call in which that gather ran has not
     * returned, otherwise 0. A token of a call that has returned makes gather read freed memory
     * (KPT_OP_IN_ONE_CALL). *GATHERED receives the token of this stack. */
    uint32_t (*gather)(uint32_t depth, uint64_t *gathered);
    void (*read)(uint32_t stack, uint32_t *below, uint32_t *location);
    kpt_symbol (*describe)(uint32_t location);
} kpti_stack_source;

extern const kpti_observer_impl kpti_execution_trace;
/* Defined by the backend. */
extern const kpti_stack_source kpti_observer_stacks;

#ifdef __cplusplus
}
#endif
#endif
