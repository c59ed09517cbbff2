/* deflate.h: an encoder of deflate streams (RFC 1951) for traces: long lines that differ only in numbers. On
 * these its output is as small as that of zlib's level 6, and it is faster than level 1 (docs/torch.md has
 * figures). The reason is that it searches only for matches of 7 bytes and more; fewer digits are smaller as
 * literals.
 *
 * A part of a stream is compressed independently, and ends at a whole byte. So parts that several threads have
 * compressed are, in order, one stream. One thread at a time uses an encoder. */
#ifndef KPTI_WRITERS_DEFLATE_DEFLATE_H
#define KPTI_WRITERS_DEFLATE_DEFLATE_H

#include <stddef.h>

#include "writers/deflate/deflate_block.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    KPTI_DEFLATE_MIN_MATCH = 7,
    KPTI_DEFLATE_BLOCK_BYTES = 256 * 1024,
    KPTI_DEFLATE_HASH_BITS = 14,
    KPTI_DEFLATE_MAX_PART = 1 << 30,
};

/* Most bytes that SIZE bytes are compressed to. */
#define KPTI_DEFLATE_ROOM(size) ((size) + (size) / 4096 + 64)

/* About 460 kB. Needs no initialization. */
typedef struct kpti_deflate {
    uint32_t heads[1 << KPTI_DEFLATE_HASH_BITS]; /* by hash: the last entered position */
    /* By position: the previous position with the same hash. */
    uint32_t earlier[KPTI_DEFLATE_MAX_DISTANCE];
    kpti_sequence sequences[KPTI_DEFLATE_BLOCK_BYTES / KPTI_DEFLATE_MIN_MATCH];
} kpti_deflate;

/* Compresses SIZE bytes, at most KPTI_DEFLATE_MAX_PART, to OUT, which has KPTI_DEFLATE_ROOM(SIZE) bytes.
 * Returns the number of bytes written. No block of the part is marked as the last. Equal data gives equal
 * bytes. */
size_t kpti_deflate_part(kpti_deflate *d, const void *data, size_t size, void *out);

#ifdef __cplusplus
}
#endif
#endif
