/* lock_owner.h: the thread that holds a lock, recorded only in builds with assertions (assert.h), so that a "_locked"
 * function can assert that its caller holds the lock. The forking thread has the same identity in the child. */
#ifndef KPTI_CORE_BASE_LOCK_OWNER_H
#define KPTI_CORE_BASE_LOCK_OWNER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "core/base/assert.h"

typedef struct kpti_lock_owner {
    _Atomic uintptr_t thread; /* 0: the lock is free */
} kpti_lock_owner;

/* Whether the calling thread holds the lock. Always 0 in builds without assertions. */
static inline int kpti_lock_is_mine(const kpti_lock_owner *owner)
{
    return atomic_load_explicit(&owner->thread, memory_order_relaxed) == (uintptr_t)pthread_self();
}

/* Acquires LOCK, which does not nest. */
static inline void kpti_lock_acquire(pthread_mutex_t *lock, kpti_lock_owner *owner)
{
    kpti_assert(!kpti_lock_is_mine(owner));
    (void)pthread_mutex_lock(lock);
#ifdef KPTI_ASSERTIONS
    atomic_store_explicit(&owner->thread, (uintptr_t)pthread_self(), memory_order_relaxed);
#else
    (void)owner;
#endif
}

/* Releases LOCK, which the calling thread holds. */
static inline void kpti_lock_release(pthread_mutex_t *lock, kpti_lock_owner *owner)
{
    kpti_assert(kpti_lock_is_mine(owner));
#ifdef KPTI_ASSERTIONS
    atomic_store_explicit(&owner->thread, 0, memory_order_relaxed);
#else
    (void)owner;
#endif
    (void)pthread_mutex_unlock(lock);
}

#endif
