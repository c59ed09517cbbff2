/* detached_readers.h: the threads that read their frames without the GIL, and whether they may: not while the
 * interpreter ends. A thread says that it reads before it looks whether it may; who forbids it first says so,
 * then waits until nobody reads: one of the two sees the other (asymmetric_barrier.h). Who reads waits for nothing but
 * short locks of ours. */
#ifndef KPTI_PYTHON_TRACER_CAPTURE_DETACHED_READERS_H
#define KPTI_PYTHON_TRACER_CAPTURE_DETACHED_READERS_H

#include "core/base/asymmetric_barrier.h"

/* One of each thread. */
typedef struct kpti_detached_reader {
    struct kpti_detached_reader *next;
    struct kpti_detached_reader **at; /* what points to it */
    uint32_t reads;                   /* atomic: how often; only its thread changes it */
} kpti_detached_reader;

extern uint32_t kpti_detached_reads_allowed __attribute__((visibility("hidden"))); /* atomic */

/* 0: it may not. Either way leave comes next. */
static inline uint32_t kpti_detached_read_begin(kpti_detached_reader *r)
{
    kpti_barrier_say(&r->reads, __atomic_load_n(&r->reads, __ATOMIC_RELAXED) + 1);
    return __atomic_load_n(&kpti_detached_reads_allowed, __ATOMIC_ACQUIRE);
}

static inline void kpti_detached_read_end(kpti_detached_reader *r)
{
    __atomic_store_n(&r->reads, __atomic_load_n(&r->reads, __ATOMIC_RELAXED) - 1, __ATOMIC_RELEASE);
}

void kpti_detached_readers_add(kpti_detached_reader *r);
void kpti_detached_readers_remove(kpti_detached_reader *r);

void kpti_detached_reads_allow(void);
/* When this returns nobody reads any more. */
void kpti_detached_reads_disallow(void);

/* Around a fork; in its child the calling thread's, or NULL, is the only one. */
void kpti_detached_readers_lock(void);
void kpti_detached_readers_unlock(void);
void kpti_detached_readers_forked_locked(kpti_detached_reader *own);

#endif
