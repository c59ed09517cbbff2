/* double_text_cache.h: doubles as JSON has them, kept while they come again: most are the same few settings, and to
 * find the shortest text of one takes longer than all else in a node. */
#ifndef KPTI_EXECUTION_TRACE_OUTPUT_DOUBLE_TEXT_CACHE_H
#define KPTI_EXECUTION_TRACE_OUTPUT_DOUBLE_TEXT_CACHE_H

#include "execution_trace/output/string_buffer.h"

enum { KPTI_ET_REAL_PIECES = 64 };

typedef struct kpti_et_real_piece {
    uint64_t bits; /* of the double */
    uint32_t size; /* 0: none */
    char text[KPTI_JSON_MOST_NUMBER];
} kpti_et_real_piece;

/* Begins as zeroes. */
typedef struct kpti_et_real_pieces {
    kpti_et_real_piece pieces[KPTI_ET_REAL_PIECES];
} kpti_et_real_pieces;

/* Writes the double that has BITS, and returns where it ended; KPTI_JSON_MOST_NUMBER bytes are written. */
static inline char *kpti_et_put_real(kpti_et_real_pieces *p, char *to, uint64_t bits)
{
    kpti_et_real_piece *piece = &p->pieces[bits * UINT64_C(0x9E3779B97F4A7C15) >> 58];
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
