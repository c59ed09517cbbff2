#include "python_tracer/chunks/chunk_pool.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/assert.h"

static kpti_chunk *kept;
static uint32_t kept_count;

static inline int is_valid(void)
{
    return kept_count <= KPTI_MAX_KEPT && !kept == !kept_count;
}

kpti_chunk *kpti_chunk_pool_get_locked(const kpti_env *env, uint32_t capacity)
{
    kpti_chunk *chunk = kept;
    if (env->host.alloc) {
        chunk = env->host.alloc(env->host.ctx, kpti_chunk_bytes(capacity));
    } else if (chunk && capacity == KPTI_CHUNK_EVENTS) {
        kept = chunk->next;
        kept_count--;
    } else {
        chunk = malloc(kpti_chunk_bytes(capacity));
    }
    kpti_assert(is_valid());
    if (!chunk) return NULL;
    memset(chunk, 0, sizeof *chunk);
    chunk->capacity = capacity;
    chunk->events = (kpti_event *)(chunk + 1);
    return chunk;
}

void kpti_chunk_pool_put_locked(const kpti_env *env, kpti_chunk *chunk)
{
    if (env->host.alloc || chunk->capacity != KPTI_CHUNK_EVENTS || kept_count == KPTI_MAX_KEPT) {
        kpti_free(env, chunk, kpti_chunk_bytes(chunk->capacity));
        return;
    }
    chunk->next = kept;
    kept = chunk;
    kept_count++;
    kpti_assert(is_valid());
}
