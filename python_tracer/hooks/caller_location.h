/* caller_location.h: finds the code location that the Python function on top was called from. */
#ifndef KPTI_PYTHON_TRACER_HOOKS_CALLER_LOCATION_H
#define KPTI_PYTHON_TRACER_HOOKS_CALLER_LOCATION_H

#include "python_tracer/interpreter/raw_frame.h"
#include "python_tracer/state/thread_state.h"

/* Returns the instruction of the frame below the topmost frame of THREAD, the calling thread, also if C
 * code is between them. Runs inside a callback with busy set. Python may run in it, so values read from the
 * thread's caches before may have changed. Leaves a pending exception alone. */
kpti_instruction kpti_caller(kpti_thread *thread);

#endif
