/* caller_location.h: where the Python function that is on top was called from. */
#ifndef KPTI_PYTHON_TRACER_HOOKS_CALLER_LOCATION_H
#define KPTI_PYTHON_TRACER_HOOKS_CALLER_LOCATION_H

#include "python_tracer/interpreter/raw_frame.h"
#include "python_tracer/state/thread_state.h"

/* The instruction of the frame below the topmost one of THREAD, the calling one, also through C. Inside a
 * callback, with busy set, but Python may run in it: what was read of the thread's caches before may have
 * changed. Leaves a pending exception alone. */
kpti_instruction kpti_caller(kpti_thread *thread);

#endif
