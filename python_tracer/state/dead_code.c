#include "python_tracer/state/dead_code.h"

#include <pthread.h>

#include "core/base/lock_owner.h"
#include "python_tracer/state/tracing_lock.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static kpti_lock_owner lock_owner;
static const void *last[KPTI_DEAD_CODES]; /* index: the epoch's low half before the increment */

void kpti_dead_code_lock(void)
{
    kpti_lock_acquire(&lock, &lock_owner);
}

void kpti_dead_code_unlock(void)
{
    kpti_lock_release(&lock, &lock_owner);
}

void kpti_dead_code_add(const void *address)
{
    kpti_dead_code_lock();
    last[(uint32_t)atomic_load_explicit(&kpti_tracing_epoch, memory_order_relaxed) %
         KPTI_DEAD_CODES] = address;
    /* Past UINT32_MAX the increment carries into the upper half, and every thread synchronizes once. */
    atomic_fetch_add(&kpti_tracing_epoch, 1);
    kpti_dead_code_unlock();
}

uint32_t kpti_dead_code_since(uint64_t *epoch, const void **out)
{
    uint32_t now;
    uint32_t count;
    kpti_dead_code_lock();
    now = (uint32_t)atomic_load_explicit(&kpti_tracing_epoch, memory_order_relaxed);
    count = now - (uint32_t)*epoch;
    for (uint32_t i = 0; i < count && count <= KPTI_DEAD_CODES; i++)
        out[i] = last[(now - 1 - i) % KPTI_DEAD_CODES];
    kpti_dead_code_unlock();
    *epoch = (*epoch & ~(uint64_t)UINT32_MAX) | now;
    return count;
}
