/* idle_threads.h: records the open calls of threads that were inside Python when a run began and that may
 * neither call nor return during the run. The thread that starts the run records them once, on their
 * behalf. A thread that has its own event walks its own stack and replaces this record. */
#ifndef KPTI_PYTHON_TRACER_THREADS_IDLE_THREADS_H
#define KPTI_PYTHON_TRACER_THREADS_IDLE_THREADS_H

struct kpti_tracer;

/* Records the open calls of all other threads. The caller holds the GIL. Leaves a pending exception alone.
 * Does nothing on free-threaded builds, where a thread may not read another thread's frames. */
void kpti_idle_threads_record(struct kpti_tracer *tracer);

#endif
