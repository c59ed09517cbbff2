/* watched_calls.h: notifies hosts of watched calls when they begin. During the notification the host reads
 * the data that it needs from the object. Its answer is recorded with the call. No object is kept alive. */
#ifndef KPTI_PYTHON_TRACER_HOOKS_WATCHED_CALLS_H
#define KPTI_PYTHON_TRACER_HOOKS_WATCHED_CALLS_H

#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/state/thread_state.h"

/* Notifies the hosts of the tracers in MASK that watch CODE, whose frame has just begun, then appends
 * WORD's enter with their answers. The enter is appended last because a collection that the host starts is
 * recorded too, and must not come between the enter and the answer. CALLER is the line of the call, or 0.
 * Runs inside a callback with busy set. Leaves a pending exception alone. */
void kpti_watch_enter(kpti_thread *thread, PyCodeObject *code, uint32_t word, uint32_t mask,
                      uint32_t caller);

#endif
