#include "python_tracer/capture/detached_readers.h"

#include <pthread.h>
#include <sched.h>
#include <stddef.h>

uint32_t kpti_detached_reads_allowed;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static kpti_detached_reader *readers; /* guarded by the lock */

void kpti_detached_readers_lock(void)
{
    pthread_mutex_lock(&lock);
}

void kpti_detached_readers_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static void add_locked(kpti_detached_reader *r)
{
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
    kpti_detached_readers_lock();
    *r->at = r->next;
    if (r->next) r->next->at = r->at;
    kpti_detached_readers_unlock();
}

void kpti_detached_reads_allow(void)
{
    __atomic_store_n(&kpti_detached_reads_allowed, 1, __ATOMIC_SEQ_CST);
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
        reads = __atomic_load_n(&r->reads, __ATOMIC_SEQ_CST);
    kpti_detached_readers_unlock();
    return reads != 0;
}

void kpti_detached_reads_disallow(void)
{
    __atomic_store_n(&kpti_detached_reads_allowed, 0, __ATOMIC_SEQ_CST);
    if (!has_any()) return; /* a later reader acquires the lock later, and sees the flag */
    kpti_process_barrier();
    while (anybody_reads())
        (void)sched_yield();
}

void kpti_detached_readers_forked_locked(kpti_detached_reader *own)
{
    readers = NULL;
    if (!own) return;
    __atomic_store_n(&own->reads, 0, __ATOMIC_SEQ_CST);
    add_locked(own);
}
