#include "python_tracer/fork_handlers.h"

#include "core/callstacks/code_location.h"
#include "core/callstacks/function_table.h"
#include "core/callstacks/stack_trie.h"
#include "core/memory_log/allocation_log.h"
#include "core/memory_log/sampled_blocks.h"
#include "python_tracer/capture/detached_readers.h"
#include "python_tracer/capture/thread_capture.h"
#include "python_tracer/state/dead_code.h"
#include "python_tracer/state/tracing_lock.h"
#include "python_tracer/tracing_control.h"

static void before(void)
{
    kpti_tracing_lock();
    kpti_functions_lock();
    kpti_dead_code_lock();
    kpti_code_locations_lock();
    kpti_stacks_lock();
    kpti_memory_logs_lock();
    kpti_samples_lock();
    kpti_detached_readers_lock();
}

static void in_parent(void)
{
    kpti_detached_readers_unlock();
    kpti_samples_unlock();
    kpti_memory_logs_unlock();
    kpti_stacks_unlock();
    kpti_code_locations_unlock();
    kpti_dead_code_unlock();
    kpti_functions_unlock();
    kpti_tracing_unlock();
}

static void in_child(void)
{
    kpti_tracing_forked_locked();
    kpti_thread_capture_forked_locked();
    kpti_stacks_forked_locked();
    kpti_memory_log_forked();
    kpti_samples_clear_locked();
    in_parent(); /* releases the same locks */
}

const kpti_fork_handlers kpti_python_fork_handlers = {
    .before = before,
    .in_parent = in_parent,
    .in_child = in_child,
};
