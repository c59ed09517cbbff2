/* real_pieces.h: doubles as JSON has them, kept while they come again: most are the same few settings, and to
 * find the shortest text of one takes longer than all else in a node. */
#ifndef KPTI_ET_REAL_PIECES_H
#define KPTI_ET_REAL_PIECES_H

#include "text.h"

enum { KPTI_ET_REAL_PIECES = 64 };

typedef struct kpti_et_real_piece {
    uint64_t bits; /* of the double */
    uint32_t size; /* 0: none */
    char text[KPTI_JSON_MOST_NUMBER + KPTI_ET_STEP];
} kpti_et_real_piece;

/* Begins as zeroes. */
typedef struct kpti_et_real_pieces {
    kpti_et_real_piece pieces[KPTI_ET_REAL_PIECES];
} kpti_et_real_pieces;

/* Puts the double that has BITS. */
static inline void kpti_et_real_pieces_put(kpti_et_real_pieces *p, kpti_et_text *out, uint64_t bits)
{
    kpti_et_real_piece *piece = &p->pieces[bits * UINT64_C(0x9E3779B97F4A7C15) >> 58];
    const size_t before = out->used;
    double real;
    if (piece->size && piece->bits == bits) {
        kpti_et_text_put_short(out, piece->text, piece->size);
        return;
    }
    memcpy(&real, &bits, sizeof real);
    kpti_et_text_double(out, real);
    if (out->failed || out->used - before > KPTI_JSON_MOST_NUMBER) return;
    piece->bits = bits;
    piece->size = (uint32_t)(out->used - before);
    memcpy(piece->text, out->data + before, piece->size);
}
_Static_assert(KPTI_ET_REAL_PIECES == 1 << (64 - 58), "as many bits are taken");

#endif
