/* thread_capture.h: a thread's memory of its captures: the last stack, level by level, and the code
 * locations that it has seen. */
#ifndef KPTI_PYTHON_TRACER_CAPTURE_THREAD_CAPTURE_H
#define KPTI_PYTHON_TRACER_CAPTURE_THREAD_CAPTURE_H

#include "python_tracer/capture/capture_options.h"
#include "python_tracer/capture/detached_readers.h"
#include "python_tracer/interpreter/cpython.h"

/* Returns the stack of STATE, the calling thread's state, which the thread may read. S is its relation to
 * the GIL. FLAGS is as in stack_capture.h. If *AGAIN is not 0, the function names no new code location: if
 * it would have to, it returns 0 and leaves *AGAIN set. Otherwise it sets *AGAIN to 0. */
uint32_t kpti_thread_capture(PyThreadState *state, kpti_gil_state s, kpti_capture_options wish,
                             int *again, uint32_t *flags);

/* Returns the calling thread's reader for detached reads, or NULL if there is no memory. */
kpti_detached_reader *kpti_thread_capture_reader(void);

/* Returns the stack with the token GATHERED if it is the calling thread's last capture and the frame on top
 * is the same, at the same instruction. Returns 0 if not, or if this is unknown. The call in which it was
 * captured must not have returned. */
uint32_t kpti_thread_unchanged_stack(uint64_t gathered);

/* Forgets the calling thread's captures and releases the stacks that it holds. */
void kpti_thread_capture_forget(void);
/* Runs in the child of a fork. The caller holds the readers' lock. */
void kpti_thread_capture_forked_locked(void);

#endif
