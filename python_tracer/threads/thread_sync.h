/* thread_sync.h: brings a thread up to date with the session: its streams are those of the tracers that record,
 * and its caches hold nothing that has become wrong. */
#ifndef KPTI_PYTHON_TRACER_THREADS_THREAD_SYNC_H
#define KPTI_PYTHON_TRACER_THREADS_THREAD_SYNC_H

#include "python_tracer/state/thread_state.h"

/* For the calling thread, whose epoch is not the session's. Where code objects have died, removes them from
 * its caches. Where the set of tracers has changed, begins the streams that are missing, empties the caches,
 * and removes the hooks if nobody records. Inside a callback, with busy set. ENTERING: the frame on top is
 * about to be recorded itself. */
void kpti_sync(kpti_thread *thread, int entering);

#endif
