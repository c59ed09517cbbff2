/* detached_readers.h: the threads that do detached reads (of their frames without the GIL), and whether
 * they may. They may not while the interpreter is finalized.
 *
 * A thread sets `reads` before it checks kpti_detached_reads_allowed. Finalization clears that flag, runs
 * the barrier, and waits until no thread reads, so at least one of the two sees the other's store
 * (asymmetric_barrier.h). A reader waits for nothing but short locks of ours. */
#ifndef KPTI_PYTHON_TRACER_CAPTURE_DETACHED_READERS_H
#define KPTI_PYTHON_TRACER_CAPTURE_DETACHED_READERS_H

#include "core/base/assert.h"
#include "core/base/asymmetric_barrier.h"

/* One per thread. */
typedef struct kpti_detached_reader {
    struct kpti_detached_reader *next;
    struct kpti_detached_reader **at; /* the pointer to this reader in the list */
    _Atomic uint32_t reads;           /* nesting depth; only its thread writes it */
} kpti_detached_reader;

extern _Atomic uint32_t kpti_detached_reads_allowed __attribute__((visibility("hidden")));

/* Begins a detached read. Returns 0 if the thread may not read. kpti_detached_read_end must follow in both
 * cases. */
static inline uint32_t kpti_detached_read_begin(kpti_detached_reader *r)
{
    kpti_flag_store(&r->reads, atomic_load_explicit(&r->reads, memory_order_relaxed) + 1);
    return atomic_load_explicit(&kpti_detached_reads_allowed, memory_order_acquire);
}

static inline void kpti_detached_read_end(kpti_detached_reader *r)
{
    const uint32_t reads = atomic_load_explicit(&r->reads, memory_order_relaxed);
    kpti_assert(reads);
    atomic_store_explicit(&r->reads, reads - 1, memory_order_release);
}

void kpti_detached_readers_add(kpti_detached_reader *r);
void kpti_detached_readers_remove(kpti_detached_reader *r);

void kpti_detached_reads_allow(void);
/* Forbids detached reads. When the function returns, no thread reads any more. */
void kpti_detached_reads_disallow(void);

/* Called around a fork. In the child, OWN, the calling thread's reader or NULL, is the only one left. */
void kpti_detached_readers_lock(void);
void kpti_detached_readers_unlock(void);
void kpti_detached_readers_forked_locked(kpti_detached_reader *own);

#endif
