/* chunk_pool.h: allocates and frees chunks, and keeps some freed chunks for reuse. A fresh page costs the
 * program a page fault at its first touch, which is more than recording the calls that fit on it. Chunks
 * from a host's own allocator are always freed with that allocator. "_locked": the caller holds the tracing
 * lock. */
#ifndef KPTI_PYTHON_TRACER_CHUNKS_CHUNK_POOL_H
#define KPTI_PYTHON_TRACER_CHUNKS_CHUNK_POOL_H

#include "abi/impl/kpti_impl.h"
#include "core/recording/recording.h"

/* Capacity of an ordinary chunk in events, which makes 64 KB. The pool keeps at most 8 MB of such chunks. */
enum { KPTI_CHUNK_EVENTS = 8192, KPTI_MAX_KEPT = 128 };

static inline size_t kpti_chunk_bytes(uint32_t capacity)
{
    return sizeof(kpti_chunk) + (size_t)capacity * sizeof(kpti_event);
}

/* Returns a chunk for CAPACITY events with a zeroed head, or NULL if there is no memory. */
kpti_chunk *kpti_chunk_pool_get_locked(const kpti_env *env, uint32_t capacity);
void kpti_chunk_pool_put_locked(const kpti_env *env, kpti_chunk *chunk);

#endif
