/* stack_cache.h: stacks that a thread has built lately, by their place and what is below. The cache is one
 * of their holders, so what it finds is alive: no lock is needed. */
#ifndef KPTI_STACK_CACHE_H
#define KPTI_STACK_CACHE_H

#include "stack.h"

enum { KPTI_STACK_CACHE = 64 };

typedef struct kpti_known_stack {
    uint32_t below;
    uint32_t place;
    uint32_t stack; /* 0: this one is empty */
} kpti_known_stack;

typedef struct kpti_stack_cache {
    kpti_known_stack stacks[KPTI_STACK_CACHE];
} kpti_stack_cache;

static inline kpti_known_stack *kpti_stack_slot(kpti_stack_cache *cache, uint32_t below,
                                                uint32_t place)
{
    return &cache->stacks[kpti_hash_mix(below, place) & (KPTI_STACK_CACHE - 1)];
}

/* The stack with PLACE on top of BELOW; 0: it is not here. */
static inline uint32_t kpti_stack_known(kpti_stack_cache *cache, uint32_t below, uint32_t place)
{
    const kpti_known_stack *known = kpti_stack_slot(cache, below, place);
    return known->below == below && known->place == place ? known->stack : 0;
}

/* The same, found or added, and kept from now on; 0 without memory. The tree's lock is held. */
static inline uint32_t kpti_stack_know_locked(kpti_stack_cache *cache, uint32_t below,
                                              uint32_t place)
{
    kpti_known_stack *slot = kpti_stack_slot(cache, below, place);
    const uint32_t before = slot->stack;
    const uint32_t stack = kpti_stack_on_locked(below, place);
    if (!stack) return 0;
    kpti_stack_retain(stack);
    *slot = (kpti_known_stack){below, place, stack};
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
