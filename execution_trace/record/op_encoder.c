#include "execution_trace/record/op_encoder.h"

#include <string.h>

#include "execution_trace/record/tensor_elements.h"

enum { MAX_DIMENSIONS = 1024 };
enum { MAX_STRING = 16 << 20 };

static inline void put_head(kpti_et_cursor *c, kpt_tape_value head)
{
    uint64_t *at = kpti_et_put(c, 1);
    if (at) memcpy(at, &head, sizeof head);
}

static void put_word(kpti_et_cursor *c, uint64_t word)
{
    uint64_t *at = kpti_et_put(c, 1);
    if (at) *at = word;
}

static inline void put_number(kpti_et_cursor *c, uint32_t kind, uint64_t bits)
{
    uint64_t *at = kpti_et_put(c, 2);
    const kpt_tape_value head = {.kind = (uint8_t)kind};
    if (!at) return;
    memcpy(at, &head, sizeof head);
    at[1] = bits;
}

static void put_bytes(kpti_et_cursor *c, kpt_str text)
{
    uint64_t *at;
    if (!text.data) text.size = 0;
    if (text.size > MAX_STRING) text.size = MAX_STRING;
    put_head(c, (kpt_tape_value){.kind = KPT_VALUE_STRING, .size = (uint32_t)text.size});
    at = kpti_et_put(c, kpti_et_words(text.size));
    if (at && text.size) memcpy(at, text.data, text.size);
}

static void put_interned(kpti_et_cursor *c, uint32_t kind, kpt_str text)
{
    const uint32_t at = kpti_et_put_text(c, text);
    put_head(c, (kpt_tape_value){.kind = (uint8_t)kind, .size = at});
}

/* --- tensors ------------------------------------------------------------------------------------ */

/* Returns all numbers of the tensor ORed together, to check whether each fits into 32 bits. */
static uint64_t any_bits(const kpt_tensor *t, uint8_t flags)
{
    uint64_t bits = (uint64_t)t->offset_elements | (uint64_t)t->element_count;
    if (!(flags & KPT_TAPE_NO_SIZES))
        for (uint32_t i = 0; i < t->dimensions; i++)
            bits |= (uint64_t)t->sizes[i];
    if (!(flags & KPT_TAPE_NO_STRIDES))
        for (uint32_t i = 0; i < t->dimensions; i++)
            bits |= (uint64_t)t->strides[i];
    return bits;
}

static void put_wide(uint64_t *at, const kpt_tensor *t, uint8_t flags)
{
    const size_t size = t->dimensions * sizeof *at;
    *at++ = (uint64_t)t->offset_elements;
    *at++ = (uint64_t)t->element_count;
    if (!(flags & KPT_TAPE_NO_SIZES) && size) {
        memcpy(at, t->sizes, size);
        at += t->dimensions;
    }
    if (!(flags & KPT_TAPE_NO_STRIDES) && size) memcpy(at, t->strides, size);
}

static void put_narrow(uint64_t *words, const kpt_tensor *t, uint8_t flags)
{
    uint32_t *at = (uint32_t *)words;
    *at++ = (uint32_t)t->offset_elements;
    *at++ = (uint32_t)t->element_count;
    if (!(flags & KPT_TAPE_NO_SIZES))
        for (uint32_t i = 0; i < t->dimensions; i++)
            *at++ = (uint32_t)t->sizes[i];
    if (!(flags & KPT_TAPE_NO_STRIDES))
        for (uint32_t i = 0; i < t->dimensions; i++)
            *at++ = (uint32_t)t->strides[i];
    if ((at - (uint32_t *)words) % 2) *at = 0; /* equal tensors have equal words */
}

static void put_elements(kpti_et_cursor *c, const kpt_tensor *t, uint8_t flags)
{
    uint64_t *at;
    if (flags & KPT_TAPE_RANGE) {
        at = kpti_et_put(c, 2);
        if (at) kpti_elements_range(t, at);
    }
    if (flags & KPT_TAPE_DATA) {
        const uint64_t bytes = kpti_elements_bytes(t);
        put_word(c, bytes);
        at = kpti_et_put(c, kpti_et_words(bytes));
        if (at) kpti_elements_copy(t, at);
    }
}

static uint8_t flags_of(const kpt_tensor *t, kpti_et_wish wish)
{
    uint8_t flags = 0;
    if (t->dimensions && (!t->sizes || t->dimensions > MAX_DIMENSIONS)) flags |= KPT_TAPE_NO_SIZES;
    if (t->dimensions && (!t->strides || t->dimensions > MAX_DIMENSIONS))
        flags |= KPT_TAPE_NO_STRIDES;
    if (t->generation || t->storage_generation) flags |= KPT_TAPE_GENERATIONS;
    if (any_bits(t, flags) >> 32) flags |= KPT_TAPE_WIDE;
    if ((wish.ranges || wish.data) && kpti_elements_are_integral(t)) {
        if (wish.ranges) flags |= KPT_TAPE_RANGE;
        if (wish.data) flags |= KPT_TAPE_DATA;
        if (t->elements == KPT_ELEMENTS_UNSIGNED) flags |= KPT_TAPE_UNSIGNED;
    }
    return flags;
}

static void put_tensor(kpti_et_cursor *c, const kpt_tensor *t, kpti_et_wish wish)
{
    const uint8_t flags = flags_of(t, wish);
    const uint32_t shown = t->dimensions > MAX_DIMENSIONS ? 0 : t->dimensions;
    const uint64_t numbers =
        2 + (flags & KPT_TAPE_NO_SIZES ? 0 : shown) + (flags & KPT_TAPE_NO_STRIDES ? 0 : shown);
    const uint64_t number_words = flags & KPT_TAPE_WIDE ? numbers : (numbers + 1) / 2;
    const kpt_tape_value head = {.kind = KPT_VALUE_TENSOR,
                                 .flags = flags,
                                 .dimensions = (uint16_t)shown,
                                 .size = t->element_bytes < UINT32_MAX ? (uint32_t)t->element_bytes
                                                                       : UINT32_MAX};
    const kpt_tape_tensor fixed = {kpti_et_put_text(c, t->dtype), kpti_et_put_text(c, t->device),
                                   t->tensor_id, t->storage_id};
    const uint64_t generations[] = {t->generation, t->storage_generation};
    const uint64_t generation_words = flags & KPT_TAPE_GENERATIONS ? 2 : 0;
    enum { FIXED_WORDS = 1 + sizeof fixed / KPTI_ET_WORD };
    const uint64_t words = FIXED_WORDS + generation_words + number_words;
    uint64_t *at = kpti_et_put(c, words);
    if (at) {
        memcpy(at, &head, sizeof head);
        memcpy(at + 1, &fixed, sizeof fixed);
        at += FIXED_WORDS;
        if (generation_words) memcpy(at, generations, sizeof generations);
        at += generation_words;
        if (flags & KPT_TAPE_WIDE)
            put_wide(at, t, flags);
        else
            put_narrow(at, t, flags);
    }
    if (flags & (KPT_TAPE_RANGE | KPT_TAPE_DATA))
        put_elements(c, t, flags);
    else if (at)
        kpti_et_dedup_tensor(c, t, words);
}

/* The struct of an older host is shorter. */
static __attribute__((noinline)) void put_any_tensor(kpti_et_cursor *c, const kpt_tensor *t,
                                                     kpti_et_wish wish)
{
    kpt_tensor whole;
    if (!t || t->struct_size < KPT_TENSOR_V1_SIZE) {
        put_head(c, (kpt_tape_value){.kind = KPT_VALUE_NONE});
    } else if (t->struct_size >= sizeof whole) {
        put_tensor(c, t, wish);
    } else {
        memset(&whole, 0, sizeof whole);
        memcpy(&whole, t, t->struct_size);
        put_tensor(c, &whole, wish);
    }
}

/* --- values ------------------------------------------------------------------------------------- */

static void put_value(kpti_et_cursor *c, const kpt_value *v, kpti_et_wish wish, int depth);

static void put_items(kpti_et_cursor *c, const kpt_value *v, kpti_et_wish wish, int depth)
{
    const uint32_t there = v->items ? v->item_count : 0;
    const uint32_t count = there < KPT_TAPE_MOST_ITEMS ? there : KPT_TAPE_MOST_ITEMS;
    if (depth >= KPT_TAPE_MOST_DEPTH) {
        put_interned(c, KPT_VALUE_OTHER, (kpt_str){"Nested", 6});
        return;
    }
    put_head(c, (kpt_tape_value){.kind = (uint8_t)v->kind, .size = count});
    for (uint32_t i = 0; i < count; i++)
        put_value(c, &v->items[i], wish, depth + 1);
}

/* The rare kinds. */
static __attribute__((noinline)) void put_other(kpti_et_cursor *c, const kpt_value *v,
                                                kpti_et_wish wish, int depth)
{
    uint64_t bits;
    switch (v->kind) {
    case KPT_VALUE_STREAM:
        put_number(c, v->kind, (uint64_t)v->number);
        break;
    case KPT_VALUE_DOUBLE:
        memcpy(&bits, &v->real, sizeof bits);
        put_number(c, v->kind, bits);
        break;
    case KPT_VALUE_STRING:
        put_bytes(c, v->text);
        break;
    case KPT_VALUE_LIST:
    case KPT_VALUE_TUPLE:
        put_items(c, v, wish, depth);
        break;
    case KPT_VALUE_DEVICE:
    case KPT_VALUE_OTHER:
        put_interned(c, v->kind, v->text);
        break;
    default: /* from a newer host */
        put_interned(c, KPT_VALUE_OTHER, (kpt_str){"Unknown", 7});
    }
}

static inline void put_value(kpti_et_cursor *c, const kpt_value *v, kpti_et_wish wish, int depth)
{
    const uint32_t kind = v->kind;
    if (kind == KPT_VALUE_INT || kind == KPT_VALUE_BOOL) {
        put_number(c, kind, (uint64_t)v->number);
    } else if (kind == KPT_VALUE_NONE) {
        put_head(c, (kpt_tape_value){.kind = KPT_VALUE_NONE});
    } else if (kind == KPT_VALUE_TENSOR) {
        put_any_tensor(c, v->tensor, wish);
    } else {
        put_other(c, v, wish, depth);
    }
}

/* Out of line, since few records have attributes. */
static __attribute__((noinline)) void put_attrs(kpti_et_cursor *c, const kpt_op *op)
{
    const kpti_et_wish none = {0, 0};
    for (uint32_t i = 0; i < kpti_et_encoded(op->attr_count); i++) {
        const kpt_attr *a = &op->attrs[i];
        const uint64_t name = kpti_et_put_text(c, a->name);
        put_word(c, name | (uint64_t)kpti_et_put_text(c, a->type) << 32);
        put_value(c, &a->value, none, 0);
    }
}

void kpti_et_encode(kpti_et_cursor *c, const kpt_op *op, kpti_et_wish wish)
{
    const uint32_t count = kpti_et_encoded(op->value_count);
    for (uint32_t i = 0; i < count; i++)
        put_value(c, &op->values[i], wish, 0);
    if (op->attr_count) put_attrs(c, op);
}
