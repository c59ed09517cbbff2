/* location_cache.h: the places that a thread has seen, by code object and instruction. Addresses of code
 * objects, with their versions, hold as long as the gathering's epoch does: then it is emptied. */
#ifndef KPTI_PYTHON_TRACER_CAPTURE_LOCATION_CACHE_H
#define KPTI_PYTHON_TRACER_CAPTURE_LOCATION_CACHE_H

#include "core/callstacks/intern_table.h"
#include "python_tracer/capture/capture_options.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/interpreter/raw_frame.h"

/* One is looked for in as many places of the cache as KPTI_PLACE_WAYS, the newest first. */
enum { KPTI_PLACE_CACHE = 512, KPTI_PLACE_WAYS = 4 };

typedef struct kpti_known_place {
    const PyCodeObject *code;
    int32_t offset;
    uint32_t place;
    uint32_t version;
} kpti_known_place;

typedef struct kpti_place_cache {
    kpti_known_place places[KPTI_PLACE_CACHE];
} kpti_place_cache;

/* The first one that AT may be in. */
static inline kpti_known_place *kpti_place_slot(kpti_place_cache *cache, kpti_instruction at)
{
    const uint64_t hash = kpti_hash_mix((uintptr_t)at.code, (uint64_t)(int64_t)at.offset);
    return &cache->places[hash % (KPTI_PLACE_CACHE / KPTI_PLACE_WAYS) * KPTI_PLACE_WAYS];
}

/* The place of an instruction that was seen before; 0: it was not. */
static inline uint32_t kpti_place_known(kpti_place_cache *cache, kpti_instruction at)
{
    const kpti_known_place *known = kpti_place_slot(cache, at);
    for (const kpti_known_place *end = known + KPTI_PLACE_WAYS; known < end; known++)
        if (known->code == at.code && known->offset == at.offset &&
            known->version == kpti_code_version(at.code))
            return known->place;
    return 0;
}

/* The place of one that was not, for a thread that stands so; 0: no memory. NO_OBJECTS: see thread_capture.h. KEPT is
 * set to 0 where it may not be remembered. */
uint32_t kpti_place_find_slow(kpti_place_cache *cache, kpti_instruction at, kpti_gil_state s,
                              int no_objects, int *kept);

#endif
