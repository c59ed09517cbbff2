/* deflate_block.h: writes one block of a deflate stream (RFC 1951), with codes made for it, or stored if the
 * codes would take more bytes. Any thread. Only deflate uses this. */
#ifndef KPTI_WRITERS_DEFLATE_DEFLATE_BLOCK_H
#define KPTI_WRITERS_DEFLATE_DEFLATE_BLOCK_H

#include <stddef.h>

#include "writers/deflate/bits.h"

enum {
    KPTI_DEFLATE_MIN_LENGTH = 3,
    KPTI_DEFLATE_MAX_LENGTH = 258,
    KPTI_DEFLATE_MAX_DISTANCE = 32768,
    KPTI_DEFLATE_LITERALS = 256,
    KPTI_DEFLATE_LENGTH_SLOTS = 29,
    KPTI_DEFLATE_DISTANCE_SLOTS = 30,
    KPTI_DEFLATE_SYMBOLS = KPTI_DEFLATE_LITERALS + 1 + KPTI_DEFLATE_LENGTH_SLOTS,
    KPTI_DEFLATE_STORED_MAX = 65535,
};

/* Literals, read from the data, followed by a match. */
typedef struct kpti_sequence {
    uint32_t literals;
    uint16_t length;
    uint16_t distance;
} kpti_sequence;

/* Invariant: the sequences cover at most SIZE bytes; the bytes after them are literals. The frequencies count
 * all literals and matches; kpti_deflate_block_put sets that of the end symbol. */
typedef struct kpti_deflate_block {
    const uint8_t *data;
    size_t size; /* less than 1 << 23 */
    const kpti_sequence *sequences;
    size_t sequence_count;
    uint32_t symbols[KPTI_DEFLATE_SYMBOLS];
    uint32_t distances[KPTI_DEFLATE_DISTANCE_SLOTS];
} kpti_deflate_block;

/* Returns the number of extra bits of VALUE. Values with the same highest bit and the same KEPT bits below it
 * share a slot; the remaining bits are extra bits. */
static inline uint32_t kpti_deflate_extra(uint32_t value, uint32_t kept)
{
    return value >> kept ? 31 - kept - (uint32_t)__builtin_clz(value) : 0;
}

static inline uint32_t kpti_deflate_length_slot(uint32_t length)
{
    const uint32_t value = length - KPTI_DEFLATE_MIN_LENGTH;
    const uint32_t extra = kpti_deflate_extra(value, 2);
    return length == KPTI_DEFLATE_MAX_LENGTH ? 28 : (extra << 2) + (value >> extra);
}

static inline uint32_t kpti_deflate_distance_slot(uint32_t distance)
{
    const uint32_t extra = kpti_deflate_extra(distance - 1, 1);
    return (extra << 1) + ((distance - 1) >> extra);
}

/* Appends the block, not marked as the last. Writes at most SIZE bytes, 6 more for each 65,535 bytes begun, and
 * the bit string's slack. */
void kpti_deflate_block_put(kpti_bits *bits, kpti_deflate_block *block);

/* Appends an empty stored block, at most 5 bytes. The stream is then at a whole byte. */
void kpti_deflate_align(kpti_bits *bits);

#endif
