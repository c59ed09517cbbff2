#include "core/base/varint.h"
#include "writers/memory/memory_model.h"

enum { MANY_UNITS = 31 };

static unsigned char *number(unsigned char *at, uint64_t value)
{
    return (unsigned char *)kpti_put_varint((char *)at, value);
}

static uint64_t zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

static unsigned char *put_token(unsigned char *at, uint64_t units, uint32_t op)
{
    *at++ = (unsigned char)((units < MANY_UNITS ? units : MANY_UNITS) << 3 | op);
    return units < MANY_UNITS ? at : number(at, units - MANY_UNITS);
}

static unsigned char *put_site(unsigned char *at, const kpti_memory_site *s)
{
    const uint32_t pool = s->pool < 7 ? s->pool : 7;
    const uint64_t eights = s->size % 8 || s->size > 120 ? 0 : s->size / 8;
    *at++ = (unsigned char)((s->kind & KPTI_MEMORY_RESIZED ? 1 : 0) | pool << 1 | eights << 4);
    if (pool == 7) at = number(at, s->pool);
    if (!eights) at = number(at, s->size);
    return number(at, s->stack);
}

/* Returns how many addresses were freed after ADDRESS, or COUNT if it is not among them. */
static uint32_t freed_age(const kpti_memory_freed *freed, uint64_t address)
{
    for (uint32_t i = 0; i < freed->count; i++)
        if (freed->addresses[freed->count - 1 - i] == address) return i;
    return freed->count;
}

static unsigned char *put_address(unsigned char *at, kpti_memory_freed *freed, uint64_t address)
{
    const uint32_t age = freed_age(freed, address);
    const int64_t apart = (int64_t)(address - freed->last);
    if (age < freed->count) {
        take_freed(freed, age);
        return number(at, (uint64_t)age << 1 | 1);
    }
    if (!(apart & 15)) return number(at, zigzag(apart / 16) << 2);
    *at++ = 2;
    memcpy(at, &address, sizeof address);
    return at + sizeof address;
}

static uint32_t *number_slot(kpti_memory_packer *p, uint64_t address)
{
    return &p->numbers[kpti_hash_spread(address) >> 47]; /* twice KPTI_MEMORY_RECENT */
}

static unsigned char *pack_alloc(kpti_memory_packer *p, unsigned char *at, uint64_t units,
                                 const kpti_memory_step *step)
{
    kpti_memory_model *m = &p->model;
    const kpti_memory_site site = {step->size, step->stack, step->pool, step->kind};
    kpti_memory_freed *freed = &m->freed[class_of(&site)];
    kpti_memory_site *usual = &m->sites[context_of(m)];
    const int is_usual = same_site(usual, &site);
    const int is_expected = expected(freed, &site) == step->address;
    at = put_token(at, units,
                   KPTI_MEMORY_OP_ALLOC | (is_usual ? 0 : KPTI_MEMORY_OP_SITE) |
                       (is_expected ? 0 : KPTI_MEMORY_OP_ADDRESS));
    if (!is_usual) {
        at = put_site(at, &site);
        *usual = site;
    }
    if (!is_expected)
        at = put_address(at, freed, step->address);
    else if (freed->count)
        take_freed(freed, 0);
    note_alloc(m, freed, &site, step->address);
    *number_slot(p, step->address) = (uint32_t)m->count;
    return at;
}

/* Returns how many allocations ago the block of STEP was allocated, or 0 if that is not known. */
static uint32_t age_of(kpti_memory_packer *p, const kpti_memory_step *step)
{
    kpti_memory_model *m = &p->model;
    const uint32_t slot = *number_slot(p, step->address);
    const uint32_t age = (uint32_t)m->count - slot + 1;
    const kpti_memory_allocated *block = block_of(m, age);
    return slot && is_recent(m, age) && block->address == step->address &&
                   p->spaces[block->site.pool] == p->spaces[step->pool]
               ? age
               : 0;
}

static unsigned char *pack_free(kpti_memory_packer *p, unsigned char *at, uint64_t units,
                                const kpti_memory_step *step, uint32_t age)
{
    kpti_memory_model *m = &p->model;
    uint32_t *usual = &m->ages[context_of(m)];
    if (!age) {
        const int64_t apart = (int64_t)(step->address - m->other);
        at = number(put_token(at, units, KPTI_MEMORY_OP_FREE_OTHER),
                    (uint64_t)step->pool << 1 | (apart & 15 ? 1 : 0));
        at = number(at, zigzag(apart & 15 ? apart : apart / 16));
        m->other = step->address;
        happened(m, 0);
        return at;
    }
    at = put_token(at, units,
                   *usual == age ? KPTI_MEMORY_OP_FREE_AS_BEFORE : KPTI_MEMORY_OP_FREE_RECENT);
    if (*usual != age) at = number(at, age);
    *usual = age;
    note_free(m, block_of(m, age));
    return at;
}

unsigned char *kpti_memory_pack(kpti_memory_packer *p, unsigned char *at, uint32_t shift,
                                const kpti_memory_step *step)
{
    kpti_memory_model *m = &p->model;
    const uint64_t units = step->ticks > m->ticks ? (step->ticks - m->ticks) >> shift : 0;
    const uint32_t age = step->kind & KPTI_MEMORY_FREE ? age_of(p, step) : 0;
    /* The time of a resized block's end is read before realloc. Another thread may have got its memory since. */
    if (age && step->kind & KPTI_MEMORY_RESIZED && block_of(m, age)->ticks > step->ticks &&
        step->ticks < m->ticks)
        return at;
    if (step->os_tid != m->os_tid) {
        at = number(put_token(at, 0, KPTI_MEMORY_OP_THREAD),
                    zigzag((int64_t)(step->os_tid - m->os_tid)));
        m->os_tid = step->os_tid;
    }
    m->ticks += units << shift;
    if (step->kind & KPTI_MEMORY_FREE) return pack_free(p, at, units, step, age);
    return pack_alloc(p, at, units, step);
}
