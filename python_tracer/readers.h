/* readers.h: the threads that read their frames without the GIL, and whether they may: not while the
 * interpreter ends. A thread says that it reads before it looks whether it may; who forbids it first says so,
 * then waits until nobody reads: one of the two sees the other. Who reads waits for nothing but short locks
 * of ours. */
#ifndef KPTI_READERS_H
#define KPTI_READERS_H

#include <stdatomic.h>

/* One of each thread. */
typedef struct kpti_reader {
    struct kpti_reader *next;
    struct kpti_reader **at; /* what points to it */
    _Atomic int reads;       /* how often: only its thread changes it */
} kpti_reader;

extern _Atomic int kpti_readers_may __attribute__((visibility("hidden")));

/* 0: it may not. Either way leave comes next. */
static inline int kpti_reader_enter(kpti_reader *r)
{
    const int reads = atomic_load_explicit(&r->reads, memory_order_relaxed);
    atomic_store_explicit(&r->reads, reads + 1, memory_order_seq_cst);
    return atomic_load_explicit(&kpti_readers_may, memory_order_seq_cst);
}

static inline void kpti_reader_leave(kpti_reader *r)
{
    const int reads = atomic_load_explicit(&r->reads, memory_order_relaxed);
    atomic_store_explicit(&r->reads, reads - 1, memory_order_release);
}

void kpti_readers_add(kpti_reader *r);
void kpti_readers_remove(kpti_reader *r);

void kpti_readers_allow(void);
/* When this returns nobody reads any more. */
void kpti_readers_forbid(void);

/* Around a fork; in its child the calling thread's, or NULL, is the only one. */
void kpti_readers_lock(void);
void kpti_readers_unlock(void);
void kpti_readers_forked_locked(kpti_reader *own);

#endif
