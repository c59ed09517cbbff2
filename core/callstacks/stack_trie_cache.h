/* stack_trie_cache.h: a thread's cache of recently built stacks, keyed by location and stack below.
 * The cache holds a reference to each of its stacks, so they are alive and a lookup needs no
 * lock. */
#ifndef KPTI_CORE_CALLSTACKS_STACK_TRIE_CACHE_H
#define KPTI_CORE_CALLSTACKS_STACK_TRIE_CACHE_H

#include <string.h>

#include "core/base/hash.h"
#include "core/callstacks/stack_trie.h"

/* A set has KPTI_STACK_WAYS slots, newest first. */
enum { KPTI_STACK_CACHE = 512, KPTI_STACK_WAYS = 4 };

typedef struct kpti_known_stack {
    uint32_t below;
    uint32_t location;
    uint32_t stack; /* 0 = empty slot */
} kpti_known_stack;

typedef struct kpti_stack_cache {
    kpti_known_stack stacks[KPTI_STACK_CACHE];
} kpti_stack_cache;

/* The first slot of the set for BELOW and LOCATION. */
static inline kpti_known_stack *kpti_stack_slot(kpti_stack_cache *cache, uint32_t below,
                                                uint32_t location)
{
    const uint64_t hash = kpti_hash_mix((uint64_t)below << 32, location) >> 32;
    return &cache->stacks[hash % (KPTI_STACK_CACHE / KPTI_STACK_WAYS) * KPTI_STACK_WAYS];
}

/* Returns the stack with LOCATION on top of BELOW, or 0 if the cache does not contain it. */
static inline uint32_t kpti_stack_known(kpti_stack_cache *cache, uint32_t below, uint32_t location)
{
    const kpti_known_stack *known = kpti_stack_slot(cache, below, location);
    for (const kpti_known_stack *end = known + KPTI_STACK_WAYS; known < end; known++)
        if (known->below == below && known->location == location) return known->stack;
    return 0;
}

/* As kpti_stack_known, but finds or adds the stack in the trie and caches it. Returns 0 if there is
 * no memory. The caller holds the trie's lock. */
static inline uint32_t kpti_stack_know_locked(kpti_stack_cache *cache, uint32_t below,
                                              uint32_t location)
{
    kpti_known_stack *slot = kpti_stack_slot(cache, below, location);
    const uint32_t before = slot[KPTI_STACK_WAYS - 1].stack;
    const uint32_t stack = kpti_stack_on_locked(below, location);
    if (!stack) return 0;
    kpti_stack_retain(stack);
    memmove(slot + 1, slot, (KPTI_STACK_WAYS - 1) * sizeof *slot);
    *slot = (kpti_known_stack){below, location, stack};
    kpti_stack_release(before);
    return stack;
}

static inline void kpti_stack_cache_empty(kpti_stack_cache *cache)
{
    for (int i = 0; i < KPTI_STACK_CACHE; i++) {
        kpti_stack_release(cache->stacks[i].stack);
        cache->stacks[i] = (kpti_known_stack){0, 0, 0};
    }
}

#endif
