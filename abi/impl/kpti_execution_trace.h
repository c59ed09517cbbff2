/* kpti_execution_trace.h: the observer that writes execution traces, and what it asks of the backend that it
 * is linked into: Python's stacks. It knows no Python itself. */
#ifndef KPTI_EXECUTION_TRACE_H
#define KPTI_EXECUTION_TRACE_H

#include "kpti_impl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stacks are numbers, as tracebacks have them: a place on top of another stack, of which 0 is the empty one.
 * Between begin and end a number stays good. Any thread, no lock of the caller's, no wait for the GIL. */
typedef struct kpti_stack_source {
    void (*begin)(void);
    void (*end)(void);
    /* The calling thread's; 0: none, or none at hand. GATHERED: what a gather left there, if the call that it
     * was in has not returned (KPT_OP_IN_ONE_CALL: else freed memory is read); else 0. Receives what is this one's. */
    uint32_t (*gather)(uint32_t depth, uint64_t *gathered);
    void (*read)(uint32_t stack, uint32_t *below, uint32_t *place);
    kpt_symbol (*describe)(uint32_t place);
} kpti_stack_source;

extern const kpti_observer_impl kpti_execution_trace;
/* The backend's. */
extern const kpti_stack_source kpti_observer_stacks;

#ifdef __cplusplus
}
#endif
#endif
