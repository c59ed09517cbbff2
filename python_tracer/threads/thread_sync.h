/* thread_sync.h: synchronizes a thread with the tracing epoch. Afterwards the thread has a stream for each
 * active tracer, and its caches hold no stale entry. */
#ifndef KPTI_PYTHON_TRACER_THREADS_THREAD_SYNC_H
#define KPTI_PYTHON_TRACER_THREADS_THREAD_SYNC_H

#include "python_tracer/state/thread_state.h"

/* Synchronizes the calling thread, whose epoch differs from the tracing epoch. If code objects have died,
 * removes them from its caches. If the set of tracers has changed, begins the missing streams, empties the
 * caches, and removes the hooks if no tracer records. Runs inside a callback with busy set. ENTERING: the
 * caller is about to record the enter of the frame on top. */
void kpti_sync(kpti_thread *thread, int entering);

/* The same where a host's operator begins, which may be without the GIL and on a thread without Python. The open
 * calls of a thread that has Python, but not the GIL, are those that were open when the tracer started. Dead code
 * objects stay in the caches until the thread's next event of Python. */
void kpti_sync_for_operator(kpti_thread *thread);

#endif
