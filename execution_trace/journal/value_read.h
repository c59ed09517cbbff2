/* value_read.h: reads the values in a journal. Whatever the bytes are, it reads nothing outside the item's
 * chunk. Values that were checked once are read again without checks. */
#ifndef KPTI_EXECUTION_TRACE_JOURNAL_VALUE_READ_H
#define KPTI_EXECUTION_TRACE_JOURNAL_VALUE_READ_H

#include "abi/kpt_observer.h"
#include "execution_trace/journal/journal_reader.h"

typedef struct kpti_et_tensor_view {
    kpt_tape_tensor fixed;
    uint64_t generation;
    uint64_t storage_generation;
    const uint64_t *numbers; /* offset, count, sizes, strides */
    uint64_t number_words;
    const uint64_t *range; /* or NULL */
    const uint64_t *data;  /* or NULL */
    uint64_t data_bytes;
    uint32_t element_bytes;
    uint32_t size_count;
    uint32_t stride_count;
    uint8_t flags;
} kpti_et_tensor_view;

static inline kpt_tape_value kpti_et_value_head(const uint64_t *at)
{
    kpt_tape_value head;
    __builtin_memcpy(&head, at, sizeof head);
    return head;
}

static inline int kpti_et_is_tensor(kpt_tape_value head)
{
    return head.kind == KPT_VALUE_TENSOR || head.kind == KPT_TAPE_SAME;
}

/* Returns the position in ITEM's chunk of the tensor at AT, or of the tensor that AT refers to. AT was
 * checked. */
static inline const uint64_t *kpti_et_tensor_words(const kpti_et_item *item, const uint64_t *at)
{
    const kpt_tape_value head = kpti_et_value_head(at);
    return head.kind == KPT_TAPE_SAME ? (const uint64_t *)item->chunk + head.size : at;
}

/* Reads the tensor at AT in ITEM. Returns the position behind it, or NULL if it does not end within ITEM. */
const uint64_t *kpti_et_tensor_read(const kpti_et_item *item, const uint64_t *at,
                                    kpti_et_tensor_view *out);

static inline int64_t kpti_et_tensor_number(const kpti_et_tensor_view *t, uint32_t number)
{
    if (t->flags & KPT_TAPE_WIDE) return (int64_t)t->numbers[number];
    return ((const uint32_t *)t->numbers)[number];
}

/* Returns the position behind the value at AT, or NULL if it does not end within ITEM or is not a value. */
const uint64_t *kpti_et_value_end(const kpti_et_item *item, const uint64_t *at);
/* The same for COUNT values, and for COUNT attributes. */
const uint64_t *kpti_et_values_end(const kpti_et_item *item, const uint64_t *at, uint64_t count);
const uint64_t *kpti_et_attrs_end(const kpti_et_item *item, const uint64_t *at, uint64_t count);
/* Calls VISIT for each tensor among COUNT values, including those in lists, with its index among the
 * tensors. The values were checked. */
typedef void (*kpti_et_tensor_fn)(void *ctx, uint32_t index, const kpti_et_tensor_view *tensor);
void kpti_et_each_tensor(const kpti_et_item *item, const uint64_t *at, uint64_t count,
                         kpti_et_tensor_fn visit, void *ctx);

#endif
