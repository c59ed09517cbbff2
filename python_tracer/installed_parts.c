#include "python_tracer/installed_parts.h"

#include "python_tracer/capture/stack_capture.h"
#include "python_tracer/frames/function_naming.h"
#include "python_tracer/hooks/asyncio_tasks.h"
#include "python_tracer/hooks/gc_events.h"
#include "python_tracer/hooks/hooks.h"
#include "python_tracer/python_exit.h"
#include "python_tracer/threads/greenlets.h"
#include "python_tracer/tracing_control.h"

static void prepare(void)
{
    (void)kpti_name_prepare();
}

static void remove_hooks(void)
{
    kpti_hooks_remove();
    kpti_gc_remove();
    kpti_tasks_release();
}

static void python_ended(void)
{
    kpti_tracing_end();
    kpti_hooks_forget();
    kpti_gc_forget();
    kpti_name_forget();
    kpti_capture_forget();
    kpti_tasks_forget();
    kpti_greenlets_forget();
}

const kpti_installed_parts kpti_python_parts = {
    .prepare = prepare,
    .watch_exit = kpti_python_exit_watch,
    .remove = remove_hooks,
    .python_ended = python_ended,
};
