/* place_cache.h: the places that a thread has seen, by code object and instruction. Addresses of code
 * objects hold as long as the session's epoch does: then it is emptied. Those of which nobody hears when they
 * die are told apart by their version. */
#ifndef KPTI_PLACE_CACHE_H
#define KPTI_PLACE_CACHE_H

#include "gatherer.h"
#include "raw_frame.h"

enum { KPTI_PLACE_CACHE = 512 };

typedef struct kpti_known_place {
    const PyCodeObject *code;
    int32_t offset;
    uint32_t place;
    uint32_t version;
} kpti_known_place;

typedef struct kpti_place_cache {
    kpti_known_place places[KPTI_PLACE_CACHE];
} kpti_place_cache;

static inline kpti_known_place *kpti_place_slot(kpti_place_cache *cache, kpti_instruction at)
{
    const uintptr_t address = (uintptr_t)at.code;
    return &cache->places[(address >> 5 ^ address >> 13 ^ (uintptr_t)at.offset >> 1) &
                          (KPTI_PLACE_CACHE - 1)];
}

/* The place of an instruction that was seen before; 0: it was not. */
static inline uint32_t kpti_place_known(kpti_place_cache *cache, kpti_instruction at)
{
    const kpti_known_place *known = kpti_place_slot(cache, at);
    return known->code == at.code && known->offset == at.offset &&
                   known->version == kpti_code_version(at.code)
               ? known->place
               : 0;
}

/* The place of one that was not, for a thread that stands so; 0: no memory. NO_OBJECTS: see gatherer.h. KEPT is
 * set to 0 where it may not be remembered. */
uint32_t kpti_place_find_slow(kpti_place_cache *cache, kpti_instruction at, kpti_standing s,
                              int no_objects, int *kept);

#endif
