/* location_cache.h: the cache of code locations that a thread has seen, by code object and instruction.
 * Addresses of code objects, with their versions, are valid within one kpti_unwind_epoch. When it changes,
 * the cache is emptied. */
#ifndef KPTI_PYTHON_TRACER_CAPTURE_LOCATION_CACHE_H
#define KPTI_PYTHON_TRACER_CAPTURE_LOCATION_CACHE_H

#include "core/base/hash.h"
#include "python_tracer/capture/capture_options.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/interpreter/raw_frame.h"

/* A set-associative cache: a lookup checks KPTI_PLACE_WAYS slots, the newest entry first. */
enum { KPTI_PLACE_CACHE = 512, KPTI_PLACE_WAYS = 4 };

typedef struct kpti_known_place {
    const PyCodeObject *code;
    int32_t offset;
    uint32_t location;
    uint32_t version;
} kpti_known_place;

typedef struct kpti_location_cache {
    kpti_known_place locations[KPTI_PLACE_CACHE];
} kpti_location_cache;

/* Returns the first slot that AT may be in. */
static inline kpti_known_place *kpti_location_slot(kpti_location_cache *cache, kpti_instruction at)
{
    const uint64_t hash = kpti_hash_mix((uintptr_t)at.code, (uint64_t)(int64_t)at.offset);
    return &cache->locations[hash % (KPTI_PLACE_CACHE / KPTI_PLACE_WAYS) * KPTI_PLACE_WAYS];
}

/* Returns the code location of an instruction, or 0 if it is not in the cache. */
static inline uint32_t kpti_location_cached(kpti_location_cache *cache, kpti_instruction at)
{
    const kpti_known_place *known = kpti_location_slot(cache, at);
    for (const kpti_known_place *end = known + KPTI_PLACE_WAYS; known < end; known++)
        if (known->code == at.code && known->offset == at.offset &&
            known->version == kpti_code_version(at.code))
            return known->location;
    return 0;
}

/* Returns the code location of an instruction that is not in the cache, or 0 if there is no memory. For S
 * and NO_OBJECTS see capture_options.h. *KEPT is set to 0 if the code location may not be remembered. */
uint32_t kpti_location_find_slow(kpti_location_cache *cache, kpti_instruction at, kpti_gil_state s,
                                 int no_objects, int *kept);

#endif
