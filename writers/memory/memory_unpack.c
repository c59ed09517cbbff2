#include "core/base/varint.h"
#include "writers/memory/memory_model.h"

enum { MANY_UNITS = 31 };

/* The bytes that are left. AT is NULL once something was missing. */
typedef struct bytes {
    const unsigned char *at;
    const unsigned char *end;
} bytes;

static uint64_t number(bytes *b)
{
    uint64_t value = 0;
    for (uint32_t shift = 0; b->at && shift < 70; shift += 7) {
        unsigned char byte;
        if (b->at == b->end) break;
        byte = *b->at++;
        if (shift < 64) value |= (uint64_t)(byte & 0x7F) << shift;
        if (!(byte & 0x80)) return value;
    }
    b->at = NULL;
    return 0;
}

static int64_t zigzag(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static kpti_memory_site read_site(bytes *b)
{
    kpti_memory_site site = {0, 0, 0, KPTI_MEMORY_ALLOC};
    uint64_t pool;
    uint64_t stack;
    unsigned char first;
    if (b->at == b->end) {
        b->at = NULL;
        return site;
    }
    first = *b->at++;
    if (first & 1) site.kind |= KPTI_MEMORY_RESIZED;
    pool = first >> 1 & 7;
    if (pool == 7) pool = number(b);
    site.size = first >> 4 ? (uint64_t)(first >> 4) * 8 : number(b);
    stack = number(b);
    if (pool >= KPTI_MEMORY_POOL_COUNT || stack > UINT32_MAX || site.size >> 48) b->at = NULL;
    site.pool = (uint16_t)pool;
    site.stack = (uint32_t)stack;
    return site;
}

static uint64_t read_address(bytes *b, kpti_memory_freed *freed)
{
    const uint64_t code = number(b);
    uint64_t address = 0;
    if (!b->at) return 0;
    if (code & 1) {
        if (code >> 1 >= freed->count) {
            b->at = NULL;
            return 0;
        }
        address = freed->addresses[freed->count - 1 - (code >> 1)];
        take_freed(freed, (uint32_t)(code >> 1));
    } else if (!(code & 2)) {
        address = freed->last + (uint64_t)zigzag(code >> 2) * 16;
    } else if ((size_t)(b->end - b->at) < sizeof address) {
        b->at = NULL;
    } else {
        memcpy(&address, b->at, sizeof address);
        b->at += sizeof address;
    }
    return address;
}

static void unpack_alloc(kpti_memory_model *m, bytes *b, uint32_t op, kpti_memory_step *step)
{
    kpti_memory_site *usual = &m->sites[context_of(m)];
    kpti_memory_freed *freed;
    if (op & KPTI_MEMORY_OP_SITE) *usual = read_site(b);
    if (!b->at || !(usual->kind & KPTI_MEMORY_ALLOC)) {
        b->at = NULL;
        return;
    }
    freed = &m->freed[class_of(usual)];
    if (op & KPTI_MEMORY_OP_ADDRESS) {
        step->address = read_address(b, freed);
    } else {
        step->address = expected(freed, usual);
        if (freed->count) take_freed(freed, 0);
    }
    step->size = usual->size;
    step->stack = usual->stack;
    step->pool = usual->pool;
    step->kind = usual->kind;
    note_alloc(m, freed, usual, step->address);
}

static void unpack_free(kpti_memory_model *m, bytes *b, uint32_t op, kpti_memory_step *step)
{
    uint32_t *usual = &m->ages[context_of(m)];
    const kpti_memory_allocated *block;
    uint64_t code;
    step->size = 0;
    step->stack = 0;
    step->kind = KPTI_MEMORY_FREE;
    if (op == KPTI_MEMORY_OP_FREE_OTHER) {
        code = number(b);
        if (code >> 1 >= KPTI_MEMORY_POOL_COUNT) b->at = NULL;
        step->pool = (uint16_t)(code >> 1);
        m->other += (uint64_t)zigzag(number(b)) * (code & 1 ? 1 : 16);
        step->address = m->other;
        happened(m, 0);
        return;
    }
    if (op == KPTI_MEMORY_OP_FREE_RECENT) {
        code = number(b);
        *usual = code < KPTI_MEMORY_RECENT ? (uint32_t)code : 0;
    }
    if (!is_recent(m, *usual)) {
        b->at = NULL;
        return;
    }
    block = block_of(m, *usual);
    step->address = block->address;
    step->pool = block->site.pool;
    note_free(m, block);
}

const unsigned char *kpti_memory_unpack(kpti_memory_model *m, const unsigned char *at,
                                        const unsigned char *end, uint32_t shift,
                                        kpti_memory_step *step)
{
    bytes b = {at, end};
    uint64_t units;
    uint32_t op;
    do {
        if (!b.at || b.at == end) return NULL;
        op = *b.at & 7;
        units = *b.at++ >> 3;
        if (units == MANY_UNITS) units += number(&b);
        if (op == KPTI_MEMORY_OP_THREAD) m->os_tid += (uint64_t)zigzag(number(&b));
    } while (op == KPTI_MEMORY_OP_THREAD);
    if (!b.at) return NULL;
    m->ticks += units << shift;
    step->ticks = m->ticks;
    step->os_tid = m->os_tid;
    if (op < KPTI_MEMORY_OP_FREE_AS_BEFORE)
        unpack_alloc(m, &b, op, step);
    else
        unpack_free(m, &b, op, step);
    return b.at;
}
