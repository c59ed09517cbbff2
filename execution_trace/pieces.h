/* pieces.h: the texts of a journal as JSON has them, kept while they come again. */
#ifndef KPTI_ET_PIECES_H
#define KPTI_ET_PIECES_H

#include "journal_reader.h"
#include "text.h"

enum { KPTI_ET_PIECES = 2048 };

typedef struct kpti_et_piece {
    const char *of; /* where the journal has it; NULL: none */
    kpti_et_text text;
} kpti_et_piece;

/* Begins as zeroes with a heap. */
typedef struct kpti_et_pieces {
    const kpti_heap *heap;
    kpti_et_piece pieces[KPTI_ET_PIECES];
} kpti_et_pieces;

/* Puts the text AT of ITEM's chunk, as the inside of a JSON string. */
static inline void kpti_et_pieces_put(kpti_et_pieces *p, kpti_et_text *out,
                                      const kpti_et_item *item, uint32_t at)
{
    const kpt_str text = kpti_et_item_text(item, at);
    const uint64_t mixed = (uint64_t)(uintptr_t)text.data * UINT64_C(0x9E3779B97F4A7C15);
    kpti_et_piece *piece = &p->pieces[mixed >> 53];
    if (!text.size) return;
    if (piece->of != text.data) {
        piece->of = text.data;
        piece->text.heap = p->heap;
        piece->text.used = 0;
        kpti_et_text_escaped(&piece->text, text);
        out->failed |= piece->text.failed;
    }
    kpti_et_text_put_all(out, &piece->text);
}
_Static_assert(KPTI_ET_PIECES == 1 << (64 - 53), "as many bits are taken");

static inline void kpti_et_pieces_free(kpti_et_pieces *p)
{
    for (int i = 0; i < KPTI_ET_PIECES; i++)
        if (p->pieces[i].text.heap) kpti_et_text_free(&p->pieces[i].text);
}

#endif
