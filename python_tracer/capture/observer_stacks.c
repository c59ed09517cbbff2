/* observer_stacks.c: captures Python stacks for the observer of operators, in the same tree as tracebacks. */
#include "abi/impl/kpti_execution_trace.h"
#include "core/callstacks/code_location.h"
#include "core/callstacks/stack_trie.h"
#include "python_tracer/capture/stack_capture.h"
#include "python_tracer/state/fork_watch.h"

static void begin(void)
{
    kpti_stacks_pin();
    kpti_fork_watch();
    kpti_capture_prepare();
}

static void read_stack(uint32_t stack, uint32_t *below, uint32_t *location)
{
    *below = kpti_stack_below(stack);
    *location = kpti_stack_place(stack);
}

const kpti_stack_source kpti_observer_stacks = {
    .begin = begin,
    .end = kpti_stacks_unpin,
    .gather = kpti_capture_within,
    .read = read_stack,
    .describe = kpti_code_location_symbol,
};
