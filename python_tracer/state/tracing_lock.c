#include "python_tracer/state/tracing_lock.h"

#include <pthread.h>

_Atomic uint64_t kpti_tracing_epoch = KPTI_TRACERS_STEP; /* differs from a new thread's */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void kpti_tracing_lock(void)
{
    pthread_mutex_lock(&lock);
}

void kpti_tracing_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void kpti_invalidate_caches(void)
{
    atomic_fetch_add(&kpti_tracing_epoch, KPTI_TRACERS_STEP);
}
