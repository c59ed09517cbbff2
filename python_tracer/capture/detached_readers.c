#include "python_tracer/capture/detached_readers.h"

#include <pthread.h>
#include <sched.h>
#include <stddef.h>

#include "core/base/lock_owner.h"

_Atomic uint32_t kpti_detached_reads_allowed;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static kpti_lock_owner lock_owner;
static kpti_detached_reader *readers; /* guarded by the lock */

void kpti_detached_readers_lock(void)
{
    kpti_lock_acquire(&lock, &lock_owner);
}

void kpti_detached_readers_unlock(void)
{
    kpti_lock_release(&lock, &lock_owner);
}

static void add_locked(kpti_detached_reader *r)
{
    kpti_assert(kpti_lock_is_mine(&lock_owner));
    r->next = readers;
    r->at = &readers;
    if (readers) readers->at = &r->next;
    readers = r;
}

void kpti_detached_readers_add(kpti_detached_reader *r)
{
    kpti_detached_readers_lock();
    add_locked(r);
    kpti_detached_readers_unlock();
}

void kpti_detached_readers_remove(kpti_detached_reader *r)
{
    kpti_assert(!atomic_load(&r->reads)); /* its thread has ended */
    kpti_detached_readers_lock();
    kpti_assert(*r->at == r && (!r->next || r->next->at == &r->next));
    *r->at = r->next;
    if (r->next) r->next->at = r->at;
    kpti_detached_readers_unlock();
}

void kpti_detached_reads_allow(void)
{
    atomic_store(&kpti_detached_reads_allowed, 1);
}

static int has_any(void)
{
    int any;
    kpti_detached_readers_lock();
    any = readers != NULL;
    kpti_detached_readers_unlock();
    return any;
}

static int anybody_reads(void)
{
    uint32_t reads = 0;
    kpti_detached_readers_lock();
    for (kpti_detached_reader *r = readers; r && !reads; r = r->next)
        reads = atomic_load(&r->reads);
    kpti_detached_readers_unlock();
    return reads != 0;
}

void kpti_detached_reads_disallow(void)
{
    atomic_store(&kpti_detached_reads_allowed, 0);
    if (!has_any()) return; /* a later reader acquires the lock later, and sees the flag */
    kpti_assert(!kpti_lock_is_mine(&lock_owner)); /* readers need it */
    kpti_process_barrier();
    while (anybody_reads())
        (void)sched_yield();
}

void kpti_detached_readers_forked_locked(kpti_detached_reader *own)
{
    readers = NULL;
    if (!own) return;
    atomic_store(&own->reads, 0);
    add_locked(own);
}
