/* thread_capture.h: what a thread remembers of the stacks that it gathered: the last one, level by level, and the
 * places that it has seen. */
#ifndef KPTI_PYTHON_TRACER_CAPTURE_THREAD_CAPTURE_H
#define KPTI_PYTHON_TRACER_CAPTURE_THREAD_CAPTURE_H

#include "python_tracer/capture/capture_options.h"
#include "python_tracer/capture/detached_readers.h"
#include "python_tracer/interpreter/cpython.h"

/* The stack of STATE, the calling thread's, which stands so and may look. FLAGS: as in stack_capture.h. AGAIN: if it
 * is not 0, nothing new is named: it stays so where there is something, and becomes 0 where all went well. */
uint32_t kpti_thread_capture(PyThreadState *state, kpti_gil_state s, kpti_capture_options wish,
                             int *again, uint32_t *flags);

/* What the calling thread reads as; NULL: no memory. */
kpti_detached_reader *kpti_thread_capture_reader(void);

/* The stack that the calling thread GATHERED last, while the frame that was on top runs, and is there again at the
 * same instruction; 0: it is not, or this is not known. The call that it was gathered in has not returned. */
uint32_t kpti_thread_unchanged_stack(uint64_t gathered);

/* The calling thread remembers nothing of the stacks that it gathered: nor does it hold any. */
void kpti_thread_capture_forget(void);
/* In the child of a fork, with the readers' lock held. */
void kpti_thread_capture_forked_locked(void);

#endif
