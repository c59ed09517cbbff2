/* deflate.h: an encoder of deflate streams (RFC 1951) for traces: long lines that are alike but for numbers.
 * On these it is at zlib's level 6 in bytes and above level 1 in speed (docs/torch.md has figures), since it
 * looks for matches of 7 bytes and more only: fewer digits take less as literals.
 *
 * A part of a stream is compressed by itself, and ends at a whole byte: so parts that several threads have
 * compressed, in their order, are one stream. One thread at a time uses an encoder. */
#ifndef KPTI_WRITERS_DEFLATE_DEFLATE_H
#define KPTI_WRITERS_DEFLATE_DEFLATE_H

#include <stddef.h>

#include "writers/deflate/deflate_block.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    KPTI_DEFLATE_LEAST_MATCH = 7,
    KPTI_DEFLATE_BLOCK_BYTES = 256 * 1024,
    KPTI_DEFLATE_HASH_BITS = 14,
    KPTI_DEFLATE_MOST_PART = 1 << 30,
};

/* Room for what SIZE bytes become at most. */
#define KPTI_DEFLATE_ROOM(size) ((size) + (size) / 4096 + 64)

/* About 460 kB; needs no initialization. */
typedef struct kpti_deflate {
    uint32_t heads[1 << KPTI_DEFLATE_HASH_BITS]; /* by hash: the last position that was entered */
    uint32_t earlier
        [KPTI_DEFLATE_MOST_DISTANCE]; /* by position: the one entered before it with its hash */
    kpti_sequence sequences[KPTI_DEFLATE_BLOCK_BYTES / KPTI_DEFLATE_LEAST_MATCH];
} kpti_deflate;

/* Compresses SIZE bytes, at most KPTI_DEFLATE_MOST_PART, to OUT, which has KPTI_DEFLATE_ROOM. Returns the number
 * of bytes there. The part holds no last block. The same data becomes the same bytes. */
size_t kpti_deflate_part(kpti_deflate *d, const void *data, size_t size, void *out);

#ifdef __cplusplus
}
#endif
#endif
