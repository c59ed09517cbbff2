/* double_text_cache.h: a cache of doubles as JSON text. Most doubles are the same few settings, and finding
 * the shortest text of a double takes longer than all other work for a node. */
#ifndef KPTI_EXECUTION_TRACE_OUTPUT_DOUBLE_TEXT_CACHE_H
#define KPTI_EXECUTION_TRACE_OUTPUT_DOUBLE_TEXT_CACHE_H

#include "core/base/hash.h"
#include "execution_trace/output/string_buffer.h"

enum { KPTI_ET_REAL_PIECES = 64 };

typedef struct kpti_et_real_piece {
    uint64_t bits; /* of the double */
    uint32_t size; /* 0 if the slot is empty */
    char text[KPTI_JSON_MAX_NUMBER];
} kpti_et_real_piece;

/* Starts as zeroes. */
typedef struct kpti_et_real_pieces {
    kpti_et_real_piece pieces[KPTI_ET_REAL_PIECES];
} kpti_et_real_pieces;

/* Writes the double that has BITS. Returns the end of its text; KPTI_JSON_MAX_NUMBER bytes are written in
 * any case. */
static inline char *kpti_et_put_real(kpti_et_real_pieces *p, char *to, uint64_t bits)
{
    kpti_et_real_piece *piece = &p->pieces[kpti_hash_spread(bits) >> 58];
    if (!piece->size || piece->bits != bits) {
        double real;
        memcpy(&real, &bits, sizeof real);
        piece->bits = bits;
        piece->size = (uint32_t)(kpti_et_put_double(piece->text, real) - piece->text);
    }
    memcpy(to, piece->text, sizeof piece->text);
    return to + piece->size;
}
_Static_assert(KPTI_ET_REAL_PIECES == 1 << (64 - 58), "as many bits are taken");

#endif
