#include "python_tracer/state/tracing_lock.h"

#include <pthread.h>

#include "core/base/lock_owner.h"

_Atomic uint64_t kpti_tracing_epoch = KPTI_TRACERS_STEP; /* differs from a new thread's */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static kpti_lock_owner lock_owner;

void kpti_tracing_lock(void)
{
    kpti_lock_acquire(&lock, &lock_owner);
}

void kpti_tracing_unlock(void)
{
    kpti_lock_release(&lock, &lock_owner);
}

#ifdef KPTI_ASSERTIONS
int kpti_tracing_lock_is_mine(void)
{
    return kpti_lock_is_mine(&lock_owner);
}
#endif

void kpti_invalidate_caches(void)
{
    atomic_fetch_add(&kpti_tracing_epoch, KPTI_TRACERS_STEP);
}
