/* tracing_lock.h: the lock that guards all cold state of tracing, and the epoch that keeps caches honest.
 *
 * The lock is held for short and bounded work; no Python runs under it, and no thread that holds it waits for
 * another thread. fork takes it. A function whose name ends in "_locked" is called with this lock held. */
#ifndef KPTI_PYTHON_TRACER_STATE_TRACING_LOCK_H
#define KPTI_PYTHON_TRACER_STATE_TRACING_LOCK_H

#include <stdatomic.h>
#include <stdint.h>

/* Moves whenever a cache may have become wrong. The upper half: the set of tracers changed, or what they
 * record; a thread synchronizes then. The lower half: a code object died (dead_code.h). One word, so that
 * the hot path needs one load. */
#define KPTI_TRACERS_STEP (UINT64_C(1) << 32)
extern _Atomic uint64_t kpti_tracing_epoch __attribute__((visibility("hidden")));
/* Moves the upper half. */
void kpti_invalidate_caches(void);

void kpti_tracing_lock(void);
void kpti_tracing_unlock(void);

#endif
