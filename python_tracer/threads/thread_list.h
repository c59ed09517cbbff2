/* thread_list.h: the traced threads of the process. */
#ifndef KPTI_PYTHON_TRACER_THREADS_THREAD_LIST_H
#define KPTI_PYTHON_TRACER_THREADS_THREAD_LIST_H

#include "python_tracer/state/thread_state.h"

/* A thread is new. */
void kpti_thread_list_add(kpti_thread *thread);
/* A thread has ended: its streams are sealed, and are nobody's. */
void kpti_thread_list_remove(kpti_thread *thread);
/* In the child of a fork: the calling thread is the only one. */
void kpti_thread_list_forked_locked(void);

#endif
