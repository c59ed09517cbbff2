/* value_templates.h: caches the JSON that values of one form share: everything but the ids of tensors, and
 * numbers. Values have one form if their words in a chunk are equal except for these. Most operators of a
 * program repeat a few forms. */
#ifndef KPTI_EXECUTION_TRACE_OUTPUT_VALUE_TEMPLATES_H
#define KPTI_EXECUTION_TRACE_OUTPUT_VALUE_TEMPLATES_H

#include "execution_trace/output/value_text.h"

enum { KPTI_ET_FORMS = 1024 };

/* One block: the words, the holes, and the text without the contents of the holes. */
typedef struct kpti_et_form {
    uint64_t hash;
    uint32_t bytes; /* of the block */
    uint32_t word_count;
    uint32_t hole_count;
    uint32_t text_size;
    uint64_t words[];
} kpti_et_form;

/* Values of a record that were checked and are to be written. */
typedef struct kpti_et_taken {
    const kpti_et_item *item;
    const uint64_t *at;
    uint64_t count;
    uint64_t hash;
    uint32_t word_count; /* 0 if they have no form, since they are too many */
    uint32_t hole_count;
} kpti_et_taken;

/* Starts as zeroes; then call init. */
typedef struct kpti_et_forms {
    const kpti_heap *heap;
    kpti_et_naming naming;
    kpti_et_taken taken;
    uint64_t *words; /* words, values and holes of the taken values; each has `room` elements */
    const uint64_t **values;
    kpti_et_hole *holes;
    uint32_t capacity;
    uint64_t bytes; /* of all forms */
    kpti_et_form *slots[KPTI_ET_FORMS];
} kpti_et_forms;

void kpti_et_forms_init(kpti_et_forms *f, const kpti_heap *heap);
void kpti_et_forms_free(kpti_et_forms *f);

/* Checks the COUNT values at AT in ITEM, and takes them for kpti_et_forms_put. Returns the position behind
 * them, or NULL if they are invalid. */
const uint64_t *kpti_et_forms_take(kpti_et_forms *f, const kpti_et_item *item, const uint64_t *at,
                                   uint64_t count);
/* Writes the values that were taken last, as kpti_et_put_values does. */
void kpti_et_forms_put(kpti_et_forms *f, kpti_et_text *out);

#endif
