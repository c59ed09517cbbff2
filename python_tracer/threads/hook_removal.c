#include "python_tracer/threads/hook_removal.h"

#include "python_tracer/interpreter/installation.h"
#include "python_tracer/state/active_tracers.h"
#include "python_tracer/state/tracing_lock.h"

void kpti_remove_hooks_if_idle(int own)
{
    int idle;
    kpti_installation_enter();
    kpti_tracing_lock();
    idle = kpti_tracers_are_idle_locked(own); /* another tracer may have begun meanwhile */
    kpti_tracing_unlock();
    if (idle) kpti_installation_remove();
    kpti_installation_leave();
}
