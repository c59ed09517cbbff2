/* memory_codec.h: packs allocations and frees, in the order of time, to two to three bytes each. Packer and unpacker
 * keep the same model of what a program does next: the site after the last two events, the address that an allocator
 * gives out again, how long ago the block that is freed now was allocated. What the model predicts takes one bit.
 *
 *   event     token, numbers
 *   token     low 3 bits: KPTI_MEMORY_OP_*; high 5 bits: units of time since the event before; 31: and a number more
 *   site      a byte: bit 0: resized; bits 1 to 3: the pool, or 7; bits 4 to 7: size / 8, or 0. Then the pool and the size
 *             where they are not in it, and the stack
 *   address   a number: bit 0 set: how many addresses of its size were freed later, in the bits above; bits 0 and 1
 *             clear: the difference to the last address of its size / 16, in zigzag order; 2: 8 bytes follow
 *
 * Numbers are varints (core/base/varint.h). The bytes that are unpacked may be damaged. */
#ifndef KPTI_WRITERS_MEMORY_MEMORY_CODEC_H
#define KPTI_WRITERS_MEMORY_MEMORY_CODEC_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The kind of an event. */
enum {
    KPTI_MEMORY_ALLOC = 1,
    KPTI_MEMORY_FREE = 2,
    KPTI_MEMORY_RESIZED = 4 /* a bit in addition to one of them */
};

enum {
    KPTI_MEMORY_OP_ALLOC = 0, /* bit 0: with an address; bit 1: with a site */
    KPTI_MEMORY_OP_ADDRESS = 1,
    KPTI_MEMORY_OP_SITE = 2,
    KPTI_MEMORY_OP_FREE_AS_BEFORE =
        4, /* of the block as many allocations ago as after the same two events */
    KPTI_MEMORY_OP_FREE_RECENT = 5, /* the number of allocations since */
    KPTI_MEMORY_OP_FREE_OTHER = 6,  /* pool; address, as the difference to the last one here */
    KPTI_MEMORY_OP_THREAD = 7       /* the next events are of another thread: difference of ids */
};

enum {
    KPTI_MEMORY_RECENT = 1 << 16, /* allocations that a free may refer to */
    KPTI_MEMORY_CONTEXTS = 1 << 14,
    KPTI_MEMORY_CLASSES = 4 * 96,
    KPTI_MEMORY_FREED = 16,    /* addresses of a class */
    KPTI_MEMORY_MAX_STEP = 80, /* bytes of an event */
    KPTI_MEMORY_MAX_SHIFT = 20
};

/* An event. A free has the size and the stack 0. */
typedef struct kpti_memory_step {
    uint64_t ticks;
    uint64_t address;
    uint64_t size; /* below 2^48 */
    uint64_t os_tid;
    uint32_t stack;
    uint16_t pool;
    uint16_t kind;
} kpti_memory_step;

typedef struct kpti_memory_site {
    uint64_t size;
    uint32_t stack;
    uint16_t pool;
    uint16_t kind;
} kpti_memory_site;

typedef struct kpti_memory_allocated {
    uint64_t address;
    kpti_memory_site site;
    uint64_t ticks;
} kpti_memory_allocated;

/* The addresses of one size that were freed and not used again, the last one at the end. */
typedef struct kpti_memory_freed {
    uint64_t last; /* address that was allocated */
    uint32_t count;
    uint32_t spare;
    uint64_t addresses[KPTI_MEMORY_FREED];
} kpti_memory_freed;

/* Zeroed at first. */
typedef struct kpti_memory_model {
    uint64_t ticks;
    uint64_t os_tid;
    uint64_t other; /* last address of KPTI_MEMORY_OP_FREE_OTHER */
    uint64_t count; /* allocations so far */
    uint32_t before[2];
    kpti_memory_allocated recent[KPTI_MEMORY_RECENT]; /* by count */
    kpti_memory_site sites[KPTI_MEMORY_CONTEXTS];
    uint32_t ages[KPTI_MEMORY_CONTEXTS];
    kpti_memory_freed freed[KPTI_MEMORY_CLASSES];
} kpti_memory_model;

/* Zeroed at first, but for spaces. */
typedef struct kpti_memory_packer {
    kpti_memory_model model;
    const uint32_t *spaces;                   /* by pool: the address space */
    uint32_t numbers[KPTI_MEMORY_RECENT * 2]; /* by hash of an address: low half of its count + 1 */
} kpti_memory_packer;

/* Packs STEP to AT, which has space for KPTI_MEMORY_MAX_STEP. Returns the end. Time never goes backwards: an earlier
 * step is packed as of the time of the last one. Returns AT for a free that a later allocation has overtaken. */
unsigned char *kpti_memory_pack(kpti_memory_packer *packer, unsigned char *at, uint32_t shift,
                                const kpti_memory_step *step);

/* Unpacks the next event. Returns the end of its bytes, or NULL if there is no whole event before END. */
const unsigned char *kpti_memory_unpack(kpti_memory_model *model, const unsigned char *at,
                                        const unsigned char *end, uint32_t shift,
                                        kpti_memory_step *step);

#ifdef __cplusplus
}
#endif
#endif
