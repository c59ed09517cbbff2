/* input_cursor.h: reads the bytes of inputs (kpt_inputs.h). A reader at the end reads KPT_INPUT_END and
 * zeroes. */
#ifndef KPTI_WRITERS_OPERATORS_INPUT_CURSOR_H
#define KPTI_WRITERS_OPERATORS_INPUT_CURSOR_H

#include <stdint.h>
#include <string.h>

#include "abi/kpt_base.h"
#include "abi/kpt_inputs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The bytes that are left. */
typedef struct kpti_input_cursor {
    const unsigned char *at;
    const unsigned char *end;
} kpti_input_cursor;

static inline kpti_input_cursor kpti_input_cursor_of(kpt_str inputs)
{
    const unsigned char *const begin = (const unsigned char *)inputs.data;
    return (kpti_input_cursor){begin, begin + inputs.size};
}

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

/* Returns the bytes of a TEXT, of which some may be missing. They are the reader's. */
static inline kpt_str kpti_input_text(kpti_input_cursor *c)
{
    const uint64_t size = kpti_input_number(c);
    const uint64_t left = (uint64_t)(c->end - c->at);
    const kpt_str text = {(const char *)c->at, size < left ? size : left};
    c->at += text.size;
    return text;
}

/* Skips the value of a keyword, whose kind WHAT was read. An unknown one ends the inputs. */
static inline void kpti_input_skip(kpti_input_cursor *c, uint32_t what)
{
    uint32_t open = 0;
    for (;; what = kpti_input_byte(c)) {
        if (what == KPT_INPUT_INT)
            (void)kpti_input_number(c);
        else if (what == KPT_INPUT_DOUBLE || what == KPT_INPUT_COMPLEX)
            (void)kpti_input_double(c);
        if (what == KPT_INPUT_COMPLEX) (void)kpti_input_double(c);
        if (what == KPT_INPUT_TEXT) (void)kpti_input_text(c);
        if (what == KPT_INPUT_LIST)
            open++;
        else if (what == KPT_INPUT_END && open)
            open--;
        else if (what == KPT_INPUT_END || what > KPT_INPUT_LIST)
            c->at = c->end;
        if (!open || c->at == c->end) return;
    }
}

/* Whether the reader is at the end of the inputs that have no name. */
static inline int kpti_input_is_last(const kpti_input_cursor *c)
{
    return c->at == c->end || *c->at == KPT_INPUT_KEYWORDS;
}

/* Reads the byte before the name of a keyword, and the name. Returns 0 at the end of the keywords. */
static inline int kpti_input_keyword(kpti_input_cursor *c, kpt_str *name)
{
    if (kpti_input_byte(c) != KPT_INPUT_TEXT) return 0;
    *name = kpti_input_text(c);
    return c->at < c->end;
}

static inline int kpti_input_is_tensor(uint32_t what)
{
    return what == KPT_INPUT_UNDEFINED || what == KPT_INPUT_TENSOR || what == KPT_INPUT_SIZES;
}

#ifdef __cplusplus
}
#endif
#endif
