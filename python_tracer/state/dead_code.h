/* dead_code.h: the addresses of the code objects that died last. Another code object may already be at such
 * an address, so a thread removes its cache entries for dead code before it uses its caches again. The
 * other entries stay, so the cost of a dying code object depends neither on the depth of the stack nor on
 * the number of functions that run.
 *
 * The low half of the tracing epoch counts dead code objects. A lock guards the list. It is held briefly,
 * no Python code runs under it, and fork acquires it. */
#ifndef KPTI_PYTHON_TRACER_STATE_DEAD_CODE_H
#define KPTI_PYTHON_TRACER_STATE_DEAD_CODE_H

#include <stdint.h>

/* Capacity of the list. A thread that has missed more dead code objects empties its caches. */
enum { KPTI_DEAD_CODES = 16 };

/* Records that the code object at ADDRESS dies. Any thread. */
void kpti_dead_code_add(const void *address);

/* Copies the addresses of code objects that died since *EPOCH to OUT, which has KPTI_DEAD_CODES slots, and
 * sets the low half of *EPOCH to the current one. Returns the number of dead code objects. If that is
 * larger than KPTI_DEAD_CODES, nothing was copied. */
uint32_t kpti_dead_code_since(uint64_t *epoch, const void **out);

void kpti_dead_code_lock(void);
void kpti_dead_code_unlock(void);

#endif
