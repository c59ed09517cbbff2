/* open_frames.h: the calls that are open on a thread, by a walk of its frames. Naming them runs Python's
 * allocator, and so maybe a collection, finalizers, and our own callbacks inside of it: each walk has
 * memory of its own. The GIL, or a thread state, is held; no lock is, and busy is not set. */
#ifndef KPTI_PYTHON_TRACER_FRAMES_OPEN_FRAMES_H
#define KPTI_PYTHON_TRACER_FRAMES_OPEN_FRAMES_H

#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/thread_state.h"

/* The calling thread's; without the one on top while an enter is being recorded. Of those that the tracers
 * in ASK watch, their hosts are told. Finds out the thread's name on the way, and leaves a pending
 * exception alone. */
kpti_open_stack kpti_open_frames_own(kpti_thread *thread, int entering, uint32_t ask);
/* The same of the frames from TOP, which may be another thread's. */
kpti_open_stack kpti_open_frames_from(PyFrameObject *top, uint32_t ask);
void kpti_open_frames_free(kpti_open_stack open);
/* How many there were. Any thread. */
uint64_t kpti_open_frames_walks(void);

#endif
