/* memory_model.h: the steps of a kpti_memory_model that packer and unpacker share. Both call them with the same arguments
 * in the same order, so both have the same model. */
#ifndef KPTI_WRITERS_MEMORY_MEMORY_MODEL_H
#define KPTI_WRITERS_MEMORY_MEMORY_MODEL_H

#include <string.h>

#include "core/base/hash.h"
#include "writers/memory/memory_codec.h"
#include "writers/memory/memory_records.h"

enum { SMALL = 512, FINE_CLASSES = 64, GROUP_CLASSES = 96 };

/* Blocks of a class are given out again for each other: those of pymalloc, of malloc, of numpy, of others. */
static inline uint32_t class_of(const kpti_memory_site *site)
{
    const uint32_t group = site->pool == 0   ? 1
                           : site->pool <= 2 ? site->size > SMALL
                           : site->pool == 3 ? 2
                                             : 3;
    const uint64_t steps = (site->size + (group == 1 ? 23 : 15)) >> 4;
    const uint32_t fine = steps < FINE_CLASSES
                              ? (uint32_t)steps
                              : (uint32_t)(FINE_CLASSES + 57 - __builtin_clzll(steps));
    return group * GROUP_CLASSES + (fine < GROUP_CLASSES ? fine : GROUP_CLASSES - 1);
}

static inline uint32_t context_of(const kpti_memory_model *m)
{
    const uint64_t hash = kpti_hash_spread((uint64_t)m->before[0] << 32 | m->before[1]);
    return (uint32_t)(hash >> 50); /* KPTI_MEMORY_CONTEXTS */
}

static inline uint32_t symbol_of(const kpti_memory_site *site)
{
    const uint64_t what = site->size << 16 | (uint64_t)site->pool << 4 | site->kind;
    return (uint32_t)(kpti_hash_mix(what, site->stack) >> 32);
}

static inline void happened(kpti_memory_model *m, uint32_t symbol)
{
    m->before[0] = m->before[1];
    m->before[1] = symbol;
}

static inline int same_site(const kpti_memory_site *a, const kpti_memory_site *b)
{
    return a->size == b->size && a->stack == b->stack && a->pool == b->pool && a->kind == b->kind;
}

/* The address that a block of this class probably gets. */
static inline uint64_t expected(const kpti_memory_freed *freed, const kpti_memory_site *site)
{
    if (freed->count) return freed->addresses[freed->count - 1];
    return freed->last + ((site->size + (site->pool ? 15 : 23)) & ~UINT64_C(15));
}

/* Takes the address that was freed AGE addresses before the last one. */
static inline void take_freed(kpti_memory_freed *freed, uint32_t age)
{
    const uint32_t index = freed->count - 1 - age;
    memmove(&freed->addresses[index], &freed->addresses[index + 1],
            (size_t)age * sizeof *freed->addresses);
    freed->count--;
}

static inline void put_freed(kpti_memory_model *m, const kpti_memory_allocated *block)
{
    kpti_memory_freed *freed = &m->freed[class_of(&block->site)];
    if (freed->count == KPTI_MEMORY_FREED) {
        memmove(freed->addresses, freed->addresses + 1,
                (KPTI_MEMORY_FREED - 1) * sizeof *freed->addresses);
        freed->count--;
    }
    freed->addresses[freed->count++] = block->address;
}

static inline void note_alloc(kpti_memory_model *m, kpti_memory_freed *freed,
                              const kpti_memory_site *site, uint64_t address)
{
    freed->last = address;
    m->recent[m->count++ % KPTI_MEMORY_RECENT] = (kpti_memory_allocated){address, *site, m->ticks};
    happened(m, symbol_of(site));
}

/* A free of the block that was allocated AGE allocations ago. */
static inline void note_free(kpti_memory_model *m, const kpti_memory_allocated *block)
{
    put_freed(m, block);
    happened(m, ~symbol_of(&block->site));
}

static inline kpti_memory_allocated *block_of(kpti_memory_model *m, uint64_t age)
{
    return &m->recent[(m->count - age) % KPTI_MEMORY_RECENT];
}

static inline int is_recent(const kpti_memory_model *m, uint64_t age)
{
    return age && age <= m->count && age < KPTI_MEMORY_RECENT;
}

#endif
