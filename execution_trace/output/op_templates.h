/* op_templates.h: what the nodes of one operator have in common, as JSON: its name, and those of the attributes that
 * are not each call's own. */
#ifndef KPTI_EXECUTION_TRACE_OUTPUT_OP_TEMPLATES_H
#define KPTI_EXECUTION_TRACE_OUTPUT_OP_TEMPLATES_H

#include "execution_trace/output/journal_text.h"

enum { KPTI_ET_LABELS = 512 };

/* The parts of a label's text, in this order. */
enum {
    KPTI_ET_LABEL_NAME,  /* ,"name":"…","ctrl_deps": */
    KPTI_ET_LABEL_ATTRS, /* from scope on, up to the inside of tensor_range */
    KPTI_ET_LABEL_OURS,  /* the end of that, and the beginning of ours up to start_ns */
    KPTI_ET_LABEL_PARTS
};

typedef struct kpti_et_label {
    const kpti_et_chunk *chunk; /* of the function; NULL: none */
    uint32_t function;
    uint64_t number; /* of all that were made; another one may have its place now */
    uint32_t ends[KPTI_ET_LABEL_PARTS];
    kpti_et_text text; /* as much more may be read behind it as kpti_et_copy does */
} kpti_et_label;

/* Begins as zeroes with a heap. */
typedef struct kpti_et_labels {
    const kpti_heap *heap;
    uint64_t count;
    kpti_et_label labels[KPTI_ET_LABELS];
} kpti_et_labels;

/* That of ITEM, a begin whose function can be; good until the next call. NULL: there is no memory. */
const kpti_et_label *kpti_et_label_of(kpti_et_labels *l, const kpti_et_item *item);
void kpti_et_labels_free(kpti_et_labels *l);

#endif
