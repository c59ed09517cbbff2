/* bits.h: writes a bit string to memory, lowest bit of each byte first, as in deflate. Inline, for the
 * encoder's loops. Only deflate uses this. */
#ifndef KPTI_WRITERS_DEFLATE_BITS_H
#define KPTI_WRITERS_DEFLATE_BITS_H

#include <stdint.h>
#include <string.h>

#include "core/base/assert.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "words are stored as they are"
#endif

/* Invariant: after a flush, fewer than 8 bits are held. */
typedef struct kpti_bits {
    uint64_t held;
    uint32_t held_count;
    uint8_t *at;
} kpti_bits;

/* Most bits put between two flushes, and bytes that a flush may overwrite after the string's end. */
enum { KPTI_BITS_MAX = 56, KPTI_BITS_SLACK_BYTES = 8 };

static inline void kpti_bits_put(kpti_bits *b, uint64_t value, uint32_t count)
{
    kpti_assert(b->held_count + count < 64 && value >> count == 0);
    b->held |= value << b->held_count;
    b->held_count += count;
}

static inline void kpti_bits_flush(kpti_bits *b)
{
    memcpy(b->at, &b->held, sizeof b->held);
    b->at += b->held_count >> 3;
    b->held >>= b->held_count & 56;
    b->held_count &= 7;
}

/* Pads with zeroes to the next whole byte. */
static inline void kpti_bits_align(kpti_bits *b)
{
    b->held_count = (b->held_count + 7) & ~7u;
    kpti_bits_flush(b);
}

#endif
