/* dead_code.h: the code objects that died last, by address. Another code object may be at that address by
 * now, so a thread removes its cache entries for them before it uses its caches again. The others stay:
 * what a dying code object costs depends neither on the depth of the stack nor on how many functions run.
 *
 * The low half of the tracing epoch counts them. A short lock guards the list; nothing of Python runs
 * under it, and fork takes it. */
#ifndef KPTI_PYTHON_TRACER_STATE_DEAD_CODE_H
#define KPTI_PYTHON_TRACER_STATE_DEAD_CODE_H

#include <stdint.h>

/* How many are kept. A thread that has missed more empties its caches. */
enum { KPTI_DEAD_CODES = 16 };

/* The code object at ADDRESS dies. Any thread. */
void kpti_dead_code_add(const void *address);

/* Copies those that died since *EPOCH to OUT, which has room for KPTI_DEAD_CODES, and sets the low half of
 * *EPOCH to now. Returns their number, or a larger one than KPTI_DEAD_CODES where not all are known. */
uint32_t kpti_dead_code_since(uint64_t *epoch, const void **out);

void kpti_dead_code_lock(void);
void kpti_dead_code_unlock(void);

#endif
