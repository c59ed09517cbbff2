/* tracing_lock.h: the tracing lock, which guards all cold state of tracing, and the tracing epoch, which
 * invalidates caches.
 *
 * The lock is held for short and bounded work. No Python code runs under it, and a thread that holds it
 * waits for no other thread. fork acquires it. A function whose name ends in "_locked" is called with this
 * lock held. */
#ifndef KPTI_PYTHON_TRACER_STATE_TRACING_LOCK_H
#define KPTI_PYTHON_TRACER_STATE_TRACING_LOCK_H

#include <stdatomic.h>
#include <stdint.h>

/* Changes whenever a cache entry may have become wrong. The upper half changes with the set of active
 * tracers or with what they record; each thread then synchronizes. The lower half counts code objects that
 * died (dead_code.h). Both are in one word, so that the hot path needs one load. */
#define KPTI_TRACERS_STEP (UINT64_C(1) << 32)
extern _Atomic uint64_t kpti_tracing_epoch __attribute__((visibility("hidden")));
/* Increments the upper half. */
void kpti_invalidate_caches(void);

void kpti_tracing_lock(void);
void kpti_tracing_unlock(void);
/* Whether the calling thread holds the lock. Defined only in builds with assertions. */
int kpti_tracing_lock_is_mine(void);

#endif
