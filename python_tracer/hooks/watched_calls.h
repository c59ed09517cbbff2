/* watched_calls.h: calls that the host wants to hear of when they begin: it reads what it needs of the object
 * now, and its answer travels with the call. Nothing is kept alive. */
#ifndef KPTI_PYTHON_TRACER_HOOKS_WATCHED_CALLS_H
#define KPTI_PYTHON_TRACER_HOOKS_WATCHED_CALLS_H

#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/state/thread_state.h"

/* CODE, whose frame has just begun, is entered, from the line CALLER if that is not 0: notifies the hosts of
 * the tracers in MASK that watch it, and appends WORD's enter with their answers. In this order, as a collection
 * that the host sets off is recorded too, and must not come between. Inside a callback, with busy set; leaves a
 * pending exception alone. */
void kpti_watch_enter(kpti_thread *thread, PyCodeObject *code, uint32_t word, uint32_t mask,
                      uint32_t caller);

#endif
