/* stack_capture.h: the Python frames of the calling thread as a number of stack_trie.h.
 *
 * A thread remembers the last stack that it gathered: of the next one, only what is not the same at its
 * outer end is looked up. No object is made of a frame where the releases' frames are known, and a thread
 * that has released the GIL reads its own without taking it. */
#ifndef KPTI_PYTHON_TRACER_CAPTURE_STACK_CAPTURE_H
#define KPTI_PYTHON_TRACER_CAPTURE_STACK_CAPTURE_H

#include <stdint.h>

/* The stack, with one holder; 0: none. DEPTH: the innermost so many; 0 = all. MAY_WAIT: the GIL may be
 * taken. FLAGS: KPT_TRACEBACK_* are added. Any thread; leaves a pending exception alone. */
uint32_t kpti_capture_python(uint32_t depth, int may_wait, uint32_t *flags);

/* The same, without a holder, for somebody who has pinned the tree; the GIL is not waited for. NO_OBJECTS: no
 * object of Python's is made; where frames can't be read without, the stack is 0. */
uint32_t kpti_capture_pinned(uint32_t depth, int no_objects);

/* The same, for somebody who is inside of a call of C that has not returned: GATHERED is what a gather of the
 * same depth in it, on this thread, left there, or 0. What the thread is in is looked at only as far as it can have
 * changed. GATHERED receives what belongs to this stack; 0: it can't be known again. */
uint32_t kpti_capture_within(uint32_t depth, uint64_t *gathered);

/* Gets ready in the interpreter that runs now, if the calling thread may touch it: what would run Python
 * in the first gather is done already. */
void kpti_capture_prepare(void);
/* The interpreter is about to end: from now on no frames are read without the GIL. The GIL is held. */
void kpti_capture_exit(void);
/* It has ended. */
void kpti_capture_forget(void);

#endif
