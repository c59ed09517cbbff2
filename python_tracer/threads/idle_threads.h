/* idle_threads.h: threads that were inside Python when a run began, and may never call or return while it
 * lasts: what they are in is recorded for them, once, by whoever starts the run. A thread that has an
 * event of its own walks its own stack, and replaces this. */
#ifndef KPTI_PYTHON_TRACER_THREADS_IDLE_THREADS_H
#define KPTI_PYTHON_TRACER_THREADS_IDLE_THREADS_H

struct kpti_tracer;

/* Records the open calls of all other threads. The GIL is held; leaves a pending exception alone. On
 * free-threaded builds nobody may look at another thread's frames, so there it does nothing. */
void kpti_idle_threads_record(struct kpti_tracer *tracer);

#endif
