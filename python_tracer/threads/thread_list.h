/* thread_list.h: the list of the traced threads of the process. */
#ifndef KPTI_PYTHON_TRACER_THREADS_THREAD_LIST_H
#define KPTI_PYTHON_TRACER_THREADS_THREAD_LIST_H

#include "python_tracer/state/thread_state.h"

/* Adds a new thread. */
void kpti_thread_list_add(kpti_thread *thread);
/* Removes a thread that has ended. Its streams are sealed and have no owner any more. */
void kpti_thread_list_remove(kpti_thread *thread);
/* Runs in the child of a fork: keeps only the calling thread. */
void kpti_thread_list_forked_locked(void);

#endif
