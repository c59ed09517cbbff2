/* watched_calls.h: calls that the host wants to hear of when they begin: it reads what it needs of the object
 * now, and its answer travels with the call. Nothing is kept alive. */
#ifndef KPTI_PYTHON_TRACER_HOOKS_WATCHED_CALLS_H
#define KPTI_PYTHON_TRACER_HOOKS_WATCHED_CALLS_H

#include "python_tracer/threads/traced_thread.h"

/* CODE, whose frame has just begun, is entered, from the line CALLER if that is not 0: tells the hosts of
 * the tracers in MASK that watch it, and appends WORD's enter with their answers. In this order, as a collection that the host sets off is
 * recorded too, and must not come between. Inside a callback, with busy set; leaves a pending exception
 * alone. */
void kpti_watch_enter(kpti_thread *thread, PyCodeObject *code, uint32_t word, uint32_t mask,
                      uint32_t caller);

/* The same for a call that was open already, in FRAME, whose code has MARK: asks the host of the tracer
 * with bit number I. 0: that does not watch it. Exceptions have been put aside; no lock is held, and busy
 * is not set. */
int kpti_watch_open(PyFrameObject *frame, uint32_t mark, int i, kpti_open_answer *out);

#endif
