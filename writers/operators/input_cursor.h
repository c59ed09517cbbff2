/* input_cursor.h: reads the bytes of an operator's inputs (kpt_inputs.h). A reader at the end reads KPT_INPUT_END and
 * zeroes. */
#ifndef KPTI_WRITERS_OPERATORS_INPUT_CURSOR_H
#define KPTI_WRITERS_OPERATORS_INPUT_CURSOR_H

#include <stdint.h>
#include <string.h>

#include "abi/kpt_inputs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The bytes that are left. */
typedef struct kpti_input_cursor {
    const unsigned char *at;
    const unsigned char *end;
} kpti_input_cursor;

static inline uint32_t kpti_input_byte(kpti_input_cursor *c)
{
    return c->at < c->end ? *c->at++ : KPT_INPUT_END;
}

static inline uint64_t kpti_input_number(kpti_input_cursor *c)
{
    uint64_t number = 0;
    for (uint32_t shift = 0; c->at < c->end; shift += 7) {
        const unsigned char byte = *c->at++;
        if (shift < 64) number |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) break;
    }
    return number;
}

static inline double kpti_input_double(kpti_input_cursor *c)
{
    uint64_t bits = 0;
    double value;
    for (uint32_t i = 0; i < sizeof bits; i++)
        if (c->at < c->end) bits |= (uint64_t)*c->at++ << (8 * i);
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Returns the number of an INT. */
static inline int64_t kpti_input_signed(kpti_input_cursor *c)
{
    const uint64_t number = kpti_input_number(c);
    return (int64_t)(number >> 1 ^ (~(number & 1) + 1));
}

static inline int kpti_input_is_tensor(uint32_t what)
{
    return what == KPT_INPUT_UNDEFINED || what == KPT_INPUT_TENSOR || what == KPT_INPUT_SIZES;
}

#ifdef __cplusplus
}
#endif
#endif
