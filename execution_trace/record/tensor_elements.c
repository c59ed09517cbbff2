#include "execution_trace/record/tensor_elements.h"

enum { MAX_DIMENSIONS = 64 };

/* Copies rows of elements, or computes their range. */
typedef struct taker {
    const kpt_tensor *tensor;
    char *out;         /* for copy */
    uint64_t range[2]; /* range and is_range: for range */
    int is_range;
    int has_range;
} taker;

/* Returns the number of elements, or 0 if the tensor's fields are inconsistent: too many dimensions,
 * missing or negative sizes, or a product that overflows. */
static uint64_t count_of(const kpt_tensor *t)
{
    uint64_t count = 1;
    if (t->dimensions > MAX_DIMENSIONS || (t->dimensions && (!t->sizes || !t->strides))) return 0;
    for (uint32_t i = 0; i < t->dimensions; i++)
        if (t->sizes[i] < 0 || __builtin_mul_overflow(count, (uint64_t)t->sizes[i], &count))
            return 0;
    return count;
}

uint64_t kpti_elements_bytes(const kpt_tensor *t)
{
    uint64_t bytes;
    return __builtin_mul_overflow(count_of(t), t->element_bytes, &bytes) ? 0 : bytes;
}

int kpti_elements_are_integral(const kpt_tensor *t)
{
    const uint64_t size = t->element_bytes;
    if (!t->data) return 0;
    if (t->elements != KPT_ELEMENTS_SIGNED && t->elements != KPT_ELEMENTS_UNSIGNED) return 0;
    return (size == 1 || size == 2 || size == 4 || size == 8) && kpti_elements_bytes(t) > 0;
}

/* Returns the element at DATA, sign-extended if it is signed. */
static uint64_t read_element(const kpt_tensor *t, const char *data)
{
    const uint32_t unused = 64 - 8 * (uint32_t)t->element_bytes;
    uint64_t bits = 0;
    uint16_t two;
    uint32_t four;
    switch (t->element_bytes) {
    case 1:
        bits = *(const uint8_t *)data;
        break;
    case 2:
        memcpy(&two, data, sizeof two);
        bits = two;
        break;
    case 4:
        memcpy(&four, data, sizeof four);
        bits = four;
        break;
    default:
        memcpy(&bits, data, sizeof bits);
    }
    return t->elements == KPT_ELEMENTS_SIGNED ? (uint64_t)((int64_t)(bits << unused) >> unused)
                                              : bits;
}

static void widen(taker *to, uint64_t bits)
{
    /* With the sign bit inverted, signed numbers have the order of unsigned ones. */
    const uint64_t turn = to->tensor->elements == KPT_ELEMENTS_SIGNED ? UINT64_C(1) << 63 : 0;
    if (!to->has_range || (bits ^ turn) < (to->range[0] ^ turn)) to->range[0] = bits;
    if (!to->has_range || (bits ^ turn) > (to->range[1] ^ turn)) to->range[1] = bits;
    to->has_range = 1;
}

static void take_row(taker *to, const char *data, uint64_t count, int64_t stride)
{
    const uint64_t size = to->tensor->element_bytes;
    if (!to->is_range && stride == (int64_t)size) {
        memcpy(to->out, data, count * size);
        to->out += count * size;
        return;
    }
    for (uint64_t i = 0; i < count; i++, data += stride) {
        if (to->is_range) {
            widen(to, read_element(to->tensor, data));
        } else {
            memcpy(to->out, data, size);
            to->out += size;
        }
    }
}

/* Takes all rows of the last dimension, in order, and counts the other dimensions like an odometer. */
static void take_all(taker *to)
{
    const kpt_tensor *t = to->tensor;
    const int64_t size = (int64_t)t->element_bytes;
    const uint32_t last = t->dimensions ? t->dimensions - 1 : 0;
    const char *data = t->data;
    int64_t at[MAX_DIMENSIONS] = {0};
    if (!t->dimensions) {
        take_row(to, data, 1, size);
        return;
    }
    for (;;) {
        uint32_t d = last;
        take_row(to, data, (uint64_t)t->sizes[last], t->strides[last] * size);
        for (;;) {
            if (d-- == 0) return;
            data += t->strides[d] * size;
            if (++at[d] < t->sizes[d]) break;
            data -= t->strides[d] * size * t->sizes[d];
            at[d] = 0;
        }
    }
}

void kpti_elements_copy(const kpt_tensor *t, void *out)
{
    taker to = {.tensor = t, .out = out};
    take_all(&to);
}

void kpti_elements_range(const kpt_tensor *t, uint64_t range[2])
{
    taker to = {.tensor = t, .is_range = 1};
    take_all(&to);
    range[0] = to.range[0];
    range[1] = to.range[1];
}
