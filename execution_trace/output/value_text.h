/* value_text.h: writes the values of a node as four lists: values, shapes, types and strides. The values
 * were checked (value_read.h). */
#ifndef KPTI_EXECUTION_TRACE_OUTPUT_VALUE_TEXT_H
#define KPTI_EXECUTION_TRACE_OUTPUT_VALUE_TEXT_H

#include "execution_trace/output/double_text_cache.h"
#include "execution_trace/output/journal_text.h"
#include "execution_trace/output/tensors.h"

/* Maximum number of bytes in a hole: the ids of a tensor, or a number. */
enum { KPTI_ET_MAX_HOLE = 48 };

/* The part of a text in which values of one form differ: ids and numbers. */
typedef struct kpti_et_hole {
    uint32_t begin;
    uint32_t end;
} kpti_et_hole;

/* State that the texts of all values share. */
typedef struct kpti_et_naming {
    kpti_et_tensors tensors;
    kpti_et_real_pieces reals;
    kpti_et_text shapes; /* shapes, types and strides of the values that are being written */
    kpti_et_text types;
    kpti_et_text strides;
} kpti_et_naming;

/* N starts as zeroes. */
void kpti_et_naming_init(kpti_et_naming *n, const kpti_heap *heap);
void kpti_et_naming_free(kpti_et_naming *n);

/* Writes {"values":[…],"shapes":[…],"types":[…],"strides":[…]} of the COUNT values at AT in ITEM. HOLES
 * receives the positions of ids and numbers, relative to the begin of this text; NULL if they are not
 * needed. */
void kpti_et_put_values(kpti_et_naming *n, kpti_et_text *out, const kpti_et_item *item,
                        const uint64_t *at, uint64_t count, kpti_et_hole *holes);
/* Writes a single value of an attribute. AS_UNSIGNED: an integer is written as unsigned. */
void kpti_et_put_value(kpti_et_naming *n, kpti_et_text *out, const kpti_et_item *item,
                       const uint64_t *at, int as_unsigned);

#endif
