/* op_templates.h: the text that all nodes of one operator share, as JSON: the name, and the attributes that
 * are the same in every call. */
#ifndef KPTI_EXECUTION_TRACE_OUTPUT_OP_TEMPLATES_H
#define KPTI_EXECUTION_TRACE_OUTPUT_OP_TEMPLATES_H

#include "execution_trace/output/journal_text.h"

enum { KPTI_ET_LABELS = 512 };

/* The parts of a label's text, in this order. */
enum {
    KPTI_ET_LABEL_NAME,  /* ,"name":"…","ctrl_deps": */
    KPTI_ET_LABEL_ATTRS, /* from scope on, up to the inside of tensor_range */
    KPTI_ET_LABEL_OURS, /* the end of tensor_range, and the beginning of our attribute up to start_ns */
    KPTI_ET_LABEL_PARTS
};

typedef struct kpti_et_label {
    const kpti_et_chunk *chunk; /* that has the function; NULL if the slot is empty */
    uint32_t function;
    uint64_t number; /* unique among all labels; a slot that was reused has another one */
    uint32_t ends[KPTI_ET_LABEL_PARTS];
    kpti_et_text text; /* readable for KPTI_ET_STEP bytes behind its end, for kpti_et_copy */
} kpti_et_label;

/* Starts as zeroes with a heap. */
typedef struct kpti_et_labels {
    const kpti_heap *heap;
    uint64_t count;
    kpti_et_label labels[KPTI_ET_LABELS];
} kpti_et_labels;

/* Returns the label of ITEM, a begin with a valid function. The label is valid until the next call. Returns
 * NULL if there is no memory. */
const kpti_et_label *kpti_et_label_of(kpti_et_labels *l, const kpti_et_item *item);
void kpti_et_labels_free(kpti_et_labels *l);

#endif
