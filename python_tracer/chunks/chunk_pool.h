/* chunk_pool.h: the memory of chunks. Of those that are let go a few are kept for the next: a fresh page costs
 * the program a fault at its first touch, which is more than recording the calls that fit on it. What a
 * host's own allocator gave goes back to it. "_locked": the tracing lock is held. */
#ifndef KPTI_PYTHON_TRACER_CHUNKS_CHUNK_POOL_H
#define KPTI_PYTHON_TRACER_CHUNKS_CHUNK_POOL_H

#include "abi/impl/kpti_impl.h"
#include "core/recording/recording.h"

/* An ordinary chunk has room for this many events, which makes 64 KB; at most 8 MB of them are kept. */
enum { KPTI_CHUNK_EVENTS = 8192, KPTI_MOST_KEPT = 128 };

static inline size_t kpti_chunk_bytes(uint32_t capacity)
{
    return sizeof(kpti_chunk) + (size_t)capacity * sizeof(kpti_event);
}

/* A chunk for CAPACITY events, its head zeroed; NULL: no memory. */
kpti_chunk *kpti_chunk_pool_get_locked(const kpti_env *env, uint32_t capacity);
void kpti_chunk_pool_put_locked(const kpti_env *env, kpti_chunk *chunk);

#endif
