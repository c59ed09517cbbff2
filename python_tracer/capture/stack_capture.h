/* stack_capture.h: captures the Python frames of the calling thread as a stack number of stack_trie.h.
 *
 * A thread remembers the last stack that it captured. At the next capture it looks up only the levels
 * inside the unchanged outer part. If the layout of frames is known, it makes no frame objects, and a
 * thread that has released the GIL reads its own frames without acquiring it (detached read). */
#ifndef KPTI_PYTHON_TRACER_CAPTURE_STACK_CAPTURE_H
#define KPTI_PYTHON_TRACER_CAPTURE_STACK_CAPTURE_H

#include <stdint.h>

/* Returns the stack, with one holder, or 0 if there is none. DEPTH is the maximum number of frames,
 * innermost first; 0: all. MAY_WAIT: the function may acquire the GIL. KPT_TRACEBACK_* are added to *FLAGS.
 * Any thread. Leaves a pending exception alone. */
uint32_t kpti_capture_python(uint32_t depth, int may_wait, uint32_t *flags);

/* The same without a holder, for a caller that has pinned the tree. Never waits for the GIL. NO_OBJECTS:
 * makes no Python object, and returns 0 if frames can't be read without one. */
uint32_t kpti_capture_pinned(uint32_t depth, int no_objects);

/* The same for a caller inside a C call that has not returned. *GATHERED is the token of a capture with the
 * same depth in that call, on this thread, or 0. Only frames that can have changed are read again.
 * *GATHERED receives the token of this stack, or 0 if it can't be recognised later. */
uint32_t kpti_capture_within(uint32_t depth, uint64_t *gathered);

/* Prepares the current interpreter, if the calling thread may touch it, so that the first capture runs no
 * Python code. */
void kpti_capture_prepare(void);
/* Forbids detached reads, since the interpreter is about to end. The caller holds the GIL. */
void kpti_capture_exit(void);
/* Forgets the interpreter, which has ended. */
void kpti_capture_forget(void);

#endif
