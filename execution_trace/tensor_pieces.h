/* tensor_pieces.h: what tensors of one kind have in common, as JSON: all but their ids. Most tensors of a
 * program have one of few shapes. */
#ifndef KPTI_ET_TENSOR_PIECES_H
#define KPTI_ET_TENSOR_PIECES_H

#include "pieces.h"
#include "value_read.h"

enum { KPTI_ET_TENSOR_PIECES = 512 };

/* The parts of a piece's text, in this order. */
enum {
    KPTI_ET_OF_VALUE, /* ,offset,count,bytes of one,"device"] */
    KPTI_ET_OF_SHAPE,
    KPTI_ET_OF_TYPE, /* Tensor(…), without quotes */
    KPTI_ET_OF_STRIDE,
    KPTI_ET_PARTS
};

typedef struct kpti_et_tensor_piece {
    const kpti_et_chunk *chunk; /* NULL: none */
    const uint64_t *first;      /* the tensor that it was made for */
    const uint64_t *numbers;    /* of it */
    kpti_et_text text;
    size_t ends[KPTI_ET_PARTS];
} kpti_et_tensor_piece;

/* Begins as zeroes. */
typedef struct kpti_et_tensor_pieces {
    kpti_et_tensor_piece pieces[KPTI_ET_TENSOR_PIECES];
} kpti_et_tensor_pieces;

/* The piece of the tensor T, which begins at AT in ITEM; good until the next call. */
const kpti_et_tensor_piece *kpti_et_tensor_piece_of(kpti_et_tensor_pieces *t, kpti_et_pieces *texts,
                                                    const kpti_et_item *item, const uint64_t *at,
                                                    const kpti_et_tensor_view *view);
void kpti_et_tensor_pieces_free(kpti_et_tensor_pieces *t);

#endif
