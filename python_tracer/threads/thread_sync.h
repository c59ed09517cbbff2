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

#endif
