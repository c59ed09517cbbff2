#include "readers.h"

#include <pthread.h>
#include <sched.h>
#include <stddef.h>

_Atomic int kpti_readers_may;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static kpti_reader *readers; /* under the lock */

void kpti_readers_lock(void)
{
    pthread_mutex_lock(&lock);
}

void kpti_readers_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static void add_locked(kpti_reader *r)
{
    r->next = readers;
    r->at = &readers;
    if (readers) readers->at = &r->next;
    readers = r;
}

void kpti_readers_add(kpti_reader *r)
{
    kpti_readers_lock();
    add_locked(r);
    kpti_readers_unlock();
}

void kpti_readers_remove(kpti_reader *r)
{
    kpti_readers_lock();
    *r->at = r->next;
    if (r->next) r->next->at = r->at;
    kpti_readers_unlock();
}

void kpti_readers_allow(void)
{
    atomic_store(&kpti_readers_may, 1);
}

static int anybody_reads(void)
{
    int reads = 0;
    kpti_readers_lock();
    for (kpti_reader *r = readers; r && !reads; r = r->next)
        reads = atomic_load_explicit(&r->reads, memory_order_seq_cst);
    kpti_readers_unlock();
    return reads;
}

void kpti_readers_forbid(void)
{
    atomic_store_explicit(&kpti_readers_may, 0, memory_order_seq_cst);
    while (anybody_reads())
        (void)sched_yield();
}

void kpti_readers_forked_locked(kpti_reader *own)
{
    readers = NULL;
    if (!own) return;
    atomic_store(&own->reads, 0);
    add_locked(own);
}
