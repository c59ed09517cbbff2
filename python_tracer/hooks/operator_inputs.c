#include "python_tracer/hooks/operator_inputs.h"

#include "abi/kpt_inputs.h"
#include "core/base/hash.h"
#include "core/recording/operator_event.h"
#include "core/recording/serialized/metadata_sections.h"
#include "python_tracer/chunks/event_stream.h"

enum { SLOT_BITS = 9, SLOTS = 1 << SLOT_BITS };

/* Where the inputs with a hash are in the chunk that is being written. */
typedef struct slot {
    uint32_t hash;
    uint32_t at; /* index of their INPUTS event, which the TEXT events follow, + 1; 0: free */
} slot;

typedef struct kpti_inputs_cache {
    uint32_t run; /* the chunk's */
    uint32_t sequence;
    slot slots[SLOTS];
} kpti_inputs_cache;

static uint64_t kept_bytes(kpt_str inputs)
{
    return inputs.size < KPT_INPUTS_MOST_BYTES ? inputs.size : KPT_INPUTS_MOST_BYTES;
}

uint32_t kpti_inputs_space(kpt_str inputs)
{
    return 1 + kpti_text_events(kept_bytes(inputs));
}

/* Returns the slot for HASH, or NULL if there is no memory. */
static slot *slot_of(kpti_stream *stream, uint32_t hash)
{
    const kpti_chunk *const chunk = stream->last;
    kpti_inputs_cache *cache = stream->inputs;
    if (!cache) {
        cache = stream->inputs = calloc(1, sizeof *cache);
        if (!cache) return NULL;
        cache->run = UINT32_MAX;
    }
    if (cache->run != chunk->run || cache->sequence != chunk->sequence) {
        memset(cache, 0, sizeof *cache);
        cache->run = chunk->run;
        cache->sequence = chunk->sequence;
    }
    return &cache->slots[hash >> (32 - SLOT_BITS)];
}

void kpti_inputs_append(kpti_stream *stream, kpt_str inputs, uint32_t format)
{
    const uint64_t size = kept_bytes(inputs);
    kpti_event *const events = stream->last->events;
    kpti_event *const at = atomic_load_explicit(&stream->cursor, memory_order_relaxed);
    const uint32_t here = (uint32_t)(at - events);
    const uint32_t count = kpti_text_events(size);
    uint64_t hash = size;
    uint32_t distance = 0;
    slot *known;
    kpti_assert(at + 1 + count <= events + stream->last->capacity);
    if (atomic_load_explicit(&stream->format, memory_order_relaxed) < format)
        atomic_store_explicit(&stream->format, format, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        at[1 + i] = kpti_text_make(inputs.data + (uint64_t)i * KPTI_TEXT_BYTES,
                                   size - (uint64_t)i * KPTI_TEXT_BYTES);
        hash = kpti_hash_mix(hash, at[1 + i]);
    }
    known = slot_of(stream, (uint32_t)hash);
    if (known && known->at && known->hash == (uint32_t)hash &&
        kpti_event_number(events[known->at - 1]) == count &&
        memcmp(&events[known->at], &at[1], count * sizeof *at) == 0)
        distance = here - known->at;
    else if (known)
        *known = (slot){(uint32_t)hash, here + 1};
    *at = kpti_inputs_make(count, distance);
    atomic_store_explicit(&stream->cursor, at + 1 + (distance ? 0 : count), memory_order_relaxed);
}
