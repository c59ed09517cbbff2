/* open_frames.h: finds the open calls of a thread by a walk of its frames. Naming them runs Python's
 * allocator, and with it maybe a collection, finalizers, and our own callbacks inside the walk. So each
 * walk has its own memory. The caller holds the GIL or a thread state, but no lock, and busy is not set. */
#ifndef KPTI_PYTHON_TRACER_FRAMES_OPEN_FRAMES_H
#define KPTI_PYTHON_TRACER_FRAMES_OPEN_FRAMES_H

#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/thread_state.h"

/* Walks the calling thread's frames, without the top frame if ENTERING. Notifies the hosts of the tracers
 * in ASK of the calls that they watch. Also reads the thread's name. Leaves a pending exception alone. */
kpti_open_stack kpti_open_frames_own(kpti_thread *thread, int entering, uint32_t ask);
/* The same for the frames from TOP, which may belong to another thread. Reads no name. */
kpti_open_stack kpti_open_frames_from(PyFrameObject *top, uint32_t ask);
void kpti_open_frames_free(kpti_open_stack open);
/* Returns the number of walks so far. Any thread. */
uint64_t kpti_open_frames_walks(void);

#endif
