#include "execution_trace/journal/value_read.h"

#include <string.h>

/* Returns AT plus WORDS, or NULL if fewer words remain. */
static const uint64_t *step(const uint64_t *at, const uint64_t *end, uint64_t words)
{
    return at && (uint64_t)(end - at) >= words ? at + words : NULL;
}

static const uint64_t *read_tensor(const uint64_t *at, const uint64_t *end,
                                   kpti_et_tensor_view *out)
{
    enum { FIXED_WORDS = 1 + sizeof out->fixed / KPTI_ET_WORD };
    const uint64_t *next = step(at, end, FIXED_WORDS);
    kpt_tape_value head;
    uint64_t numbers;
    if (!next) return NULL;
    head = kpti_et_value_head(at);
    memcpy(&out->fixed, at + 1, sizeof out->fixed);
    out->generation = out->storage_generation = out->data_bytes = 0;
    out->range = out->data = NULL;
    out->flags = head.flags;
    out->element_bytes = head.size;
    out->size_count = head.flags & KPT_TAPE_NO_SIZES ? 0 : head.dimensions;
    out->stride_count = head.flags & KPT_TAPE_NO_STRIDES ? 0 : head.dimensions;
    numbers = 2 + (uint64_t)out->size_count + out->stride_count;
    if (head.flags & KPT_TAPE_GENERATIONS) {
        at = next;
        next = step(at, end, 2);
        if (!next) return NULL;
        out->generation = at[0];
        out->storage_generation = at[1];
    }
    out->numbers = next;
    out->number_words = head.flags & KPT_TAPE_WIDE ? numbers : (numbers + 1) / 2;
    next = step(next, end, out->number_words);
    if (head.flags & KPT_TAPE_RANGE) {
        out->range = next;
        next = step(next, end, 2);
    }
    if (head.flags & KPT_TAPE_DATA) {
        at = next;
        next = step(at, end, 1);
        if (!next) return NULL;
        out->data_bytes = *at;
        out->data = next;
        next = step(next, end, kpti_et_words(out->data_bytes));
    }
    return next;
}

/* Reads a tensor that an earlier record of the chunk has. */
static const uint64_t *read_same(const kpti_et_item *item, uint32_t offset,
                                 kpti_et_tensor_view *out)
{
    const uint64_t *chunk = (const uint64_t *)item->chunk;
    if (offset < KPTI_ET_CHUNK_WORDS || offset >= item->chunk_words ||
        kpti_et_value_head(chunk + offset).kind != KPT_VALUE_TENSOR)
        return NULL;
    return read_tensor(chunk + offset, chunk + item->chunk_words, out);
}

const uint64_t *kpti_et_tensor_read(const kpti_et_item *item, const uint64_t *at,
                                    kpti_et_tensor_view *out)
{
    const kpt_tape_value head = kpti_et_value_head(at);
    if (head.kind != KPT_TAPE_SAME) return read_tensor(at, kpti_et_item_end(item), out);
    return read_same(item, head.size, out) ? at + 1 : NULL;
}

static const uint64_t *values_end(const kpti_et_item *item, const uint64_t *at, uint64_t count,
                                  int depth);

static const uint64_t *value_end(const kpti_et_item *item, const uint64_t *at, int depth)
{
    const uint64_t *end = kpti_et_item_end(item);
    kpti_et_tensor_view tensor;
    kpt_tape_value head;
    if (!step(at, end, 1)) return NULL;
    head = kpti_et_value_head(at);
    switch (head.kind) {
    case KPT_VALUE_NONE:
    case KPT_VALUE_DEVICE:
    case KPT_VALUE_OTHER:
        return at + 1;
    case KPT_VALUE_BOOL:
    case KPT_VALUE_INT:
    case KPT_VALUE_STREAM:
    case KPT_VALUE_DOUBLE:
        return step(at, end, 2);
    case KPT_VALUE_STRING:
        return step(at + 1, end, kpti_et_words(head.size));
    case KPT_VALUE_LIST:
    case KPT_VALUE_TUPLE:
        return depth < KPT_TAPE_MOST_DEPTH ? values_end(item, at + 1, head.size, depth + 1) : NULL;
    case KPT_VALUE_TENSOR:
    case KPT_TAPE_SAME:
        return kpti_et_tensor_read(item, at, &tensor);
    default:
        return NULL;
    }
}

static const uint64_t *values_end(const kpti_et_item *item, const uint64_t *at, uint64_t count,
                                  int depth)
{
    for (uint64_t i = 0; at && i < count; i++)
        at = value_end(item, at, depth);
    return at;
}

const uint64_t *kpti_et_value_end(const kpti_et_item *item, const uint64_t *at)
{
    return value_end(item, at, 0);
}

const uint64_t *kpti_et_values_end(const kpti_et_item *item, const uint64_t *at, uint64_t count)
{
    return values_end(item, at, count, 0);
}

const uint64_t *kpti_et_attrs_end(const kpti_et_item *item, const uint64_t *at, uint64_t count)
{
    const uint64_t *end = kpti_et_item_end(item);
    for (uint64_t i = 0; at && i < count; i++) {
        at = step(at, end, 1);
        if (at) at = value_end(item, at, 0);
    }
    return at;
}

static const uint64_t *visit_tensors(const kpti_et_item *item, const uint64_t *at, uint64_t count,
                                     kpti_et_tensor_fn visit, void *ctx, uint32_t *index)
{
    for (uint64_t i = 0; i < count; i++) {
        const kpt_tape_value head = kpti_et_value_head(at);
        kpti_et_tensor_view tensor;
        if (head.kind == KPT_VALUE_LIST || head.kind == KPT_VALUE_TUPLE) {
            at = visit_tensors(item, at + 1, head.size, visit, ctx, index);
        } else if (kpti_et_is_tensor(head)) {
            at = kpti_et_tensor_read(item, at, &tensor);
            visit(ctx, (*index)++, &tensor);
        } else {
            at = value_end(item, at, 0);
        }
    }
    return at;
}

void kpti_et_each_tensor(const kpti_et_item *item, const uint64_t *at, uint64_t count,
                         kpti_et_tensor_fn visit, void *ctx)
{
    uint32_t index = 0;
    (void)visit_tensors(item, at, count, visit, ctx, &index);
}
