/* value_text.h: values as a node has them: four lists, of values, shapes, types and strides. The values were
 * checked (value_read.h). */
#ifndef KPTI_ET_VALUE_TEXT_H
#define KPTI_ET_VALUE_TEXT_H

#include "ids.h"
#include "real_pieces.h"
#include "tensor_pieces.h"

enum { KPTI_ET_TENSOR_TEXTS = 1024, KPTI_ET_MOST_TENSOR_TEXT = 240 };

/* A tensor as the four lists have it, one after the other; longer ones are made again. What is copied is
 * rounded up, so some of the room stays unused. */
typedef struct kpti_et_tensor_text {
    const uint64_t *of; /* where the journal has it; NULL: none */
    uint16_t sizes[KPTI_ET_PARTS];
    char text[KPTI_ET_MOST_TENSOR_TEXT];
} kpti_et_tensor_text;

/* What the texts of all values share. */
typedef struct kpti_et_naming {
    const kpti_heap *heap;
    kpti_et_pieces pieces;
    kpti_et_real_pieces reals;
    kpti_et_tensor_pieces tensor_pieces;
    kpti_et_tensor_text tensor_texts[KPTI_ET_TENSOR_TEXTS];
    kpti_et_ids tensors;
    kpti_et_ids storages;
    uint64_t next_id;
    kpti_et_text shapes; /* … of the values that are being written */
    kpti_et_text types;
    kpti_et_text strides;
} kpti_et_naming;

/* Begins as zeroes. */
void kpti_et_naming_init(kpti_et_naming *n, const kpti_heap *heap);
void kpti_et_naming_free(kpti_et_naming *n);

/* {"values":[…],"shapes":[…],"types":[…],"strides":[…]} of the COUNT values at AT in ITEM. */
void kpti_et_put_values(kpti_et_naming *n, kpti_et_text *out, const kpti_et_item *item,
                        const uint64_t *at, uint64_t count);
/* A single value, of an attribute; AS_UNSIGNED: if it is a number. */
void kpti_et_put_value(kpti_et_naming *n, kpti_et_text *out, const kpti_et_item *item,
                       const uint64_t *at, int as_unsigned);

#endif
