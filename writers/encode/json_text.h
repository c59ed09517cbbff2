/* json_text.h: writes strings and numbers as JSON. The output is valid JSON and valid UTF-8 for any input.
 * Nothing here allocates or fails; the caller provides the space. */
#ifndef KPTI_WRITERS_ENCODE_JSON_TEXT_H
#define KPTI_WRITERS_ENCODE_JSON_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/base/assert.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Most bytes that one byte of a string, or one number, becomes. */
enum { KPTI_JSON_MAX_GROWTH = 6, KPTI_JSON_MAX_NUMBER = 32 };

/* Writes the SIZE bytes at TEXT as the inside of a JSON string, and returns its end. Quotes, backslashes and
 * control characters are escaped. Invalid UTF-8 becomes U+FFFD, one for each maximal part, as with Python's
 * "replace". */
char *kpti_json_escape(char *out, const char *text, size_t size);

static inline char *kpti_put_bytes(char *at, const char *bytes, size_t size)
{
    memcpy(at, bytes, size);
    return at + size;
}

/* Copies a literal, whose length is a compile-time constant. */
#define KPTI_PUT(at, literal) kpti_put_bytes((at), (literal), sizeof(literal) - 1)

/* ".000" to ".999". Numbers are formatted three digits at a time with this table; its 4 kB stay in the cache. */
extern const char kpti_thousand[4001];

/* Writes VALUE and returns the end, as all functions below do. All may write up to KPTI_JSON_MAX_NUMBER bytes. */
static inline char *kpti_put_below_1000(char *out, uint32_t value)
{
    uint32_t leading_zeroes = (uint32_t)(value < 10) + (uint32_t)(value < 100);
    kpti_assert(value < 1000);
    memcpy(out, kpti_thousand + 1 + (size_t)value * 4 + leading_zeroes, 4);
    return out + 3 - leading_zeroes;
}

/* Writes all three digits of VALUE. */
static inline char *kpti_put_three(char *out, uint32_t value)
{
    kpti_assert(value < 1000);
    memcpy(out, kpti_thousand + 1 + (size_t)value * 4, 4);
    return out + 3;
}

static inline char *kpti_put_below_1e9(char *out, uint32_t value)
{
    uint32_t thousands = value / 1000;
    if (value < 1000) return kpti_put_below_1000(out, value);
    if (thousands < 1000) {
        out = kpti_put_below_1000(out, thousands);
    } else {
        out = kpti_put_below_1000(out, thousands / 1000);
        out = kpti_put_three(out, thousands % 1000);
    }
    return kpti_put_three(out, value % 1000);
}

char *kpti_put_u64_slow(char *out, uint64_t value);

static inline char *kpti_put_u64(char *out, uint64_t value)
{
    return value < 1000000000 ? kpti_put_below_1e9(out, (uint32_t)value)
                              : kpti_put_u64_slow(out, value);
}

/* The leading digits of the last number. In a series of near numbers the next one has the same leading digits,
 * so they need no division; 64-bit divisions are slow. Zeroed at first. */
typedef struct kpti_near {
    uint64_t first; /* the smallest number with these digits */
    uint64_t count; /* how many numbers have these digits; 0: none stored */
    uint32_t size;
    char digits[16];
} kpti_near;

char *kpti_put_near_slow(char *out, uint64_t value, kpti_near *last);
char *kpti_put_ns_near_slow(char *out, uint64_t ns, kpti_near *last);
char *kpti_put_us_near_slow(char *out, uint64_t ns, kpti_near *last);

/* As kpti_put_u64. */
static inline char *kpti_put_near(char *out, uint64_t value, kpti_near *last)
{
    uint64_t rest = value - last->first;
    if (rest >= last->count) return kpti_put_near_slow(out, value, last);
    memcpy(out, last->digits, sizeof last->digits);
    return kpti_put_three(out + last->size, (uint32_t)rest);
}

static inline char *kpti_put_i64(char *out, int64_t value)
{
    uint64_t magnitude = (uint64_t)value;
    if (value < 0) {
        *out++ = '-';
        magnitude = 0 - magnitude;
    }
    return kpti_put_u64(out, magnitude);
}

/* Writes nanoseconds as microseconds with three decimals, exactly, and the same in every locale. */
static inline char *kpti_put_us(char *out, uint64_t ns)
{
    uint32_t short_ns = (uint32_t)ns;
    if (ns == short_ns) { /* 32-bit divisions are fast */
        out = kpti_put_below_1e9(out, short_ns / 1000);
        memcpy(out, kpti_thousand + (size_t)(short_ns % 1000) * 4, 4);
        return out + 4;
    }
    out = kpti_put_u64(out, ns / 1000);
    memcpy(out, kpti_thousand + ns % 1000 * 4, 4);
    return out + 4;
}

/* As kpti_put_us. LAST has the digits of the milliseconds. */
static inline char *kpti_put_us_near(char *out, uint64_t ns, kpti_near *last)
{
    uint64_t rest = ns - last->first;
    if (rest >= last->count) return kpti_put_us_near_slow(out, ns, last);
    memcpy(out, last->digits, sizeof last->digits);
    out = kpti_put_three(out + last->size, (uint32_t)rest / 1000);
    memcpy(out, kpti_thousand + (size_t)((uint32_t)rest % 1000) * 4, 4);
    return out + 4;
}

/* As kpti_put_u64. LAST has all digits except the last six. */
static inline char *kpti_put_ns_near(char *out, uint64_t ns, kpti_near *last)
{
    uint64_t rest = ns - last->first;
    if (rest >= last->count) return kpti_put_ns_near_slow(out, ns, last);
    memcpy(out, last->digits, sizeof last->digits);
    out = kpti_put_three(out + last->size, (uint32_t)rest / 1000);
    return kpti_put_three(out, (uint32_t)rest % 1000);
}

/* Writes the time from FROM_NS to TO_NS, which may be negative. Never overflows. */
static inline char *kpti_put_us_between(char *out, int64_t from_ns, int64_t to_ns)
{
    if (to_ns >= from_ns) return kpti_put_us(out, (uint64_t)to_ns - (uint64_t)from_ns);
    *out = '-';
    return kpti_put_us(out + 1, (uint64_t)from_ns - (uint64_t)to_ns);
}

/* Writes VALUE so that it reads back as the same number, in every locale. Infinities and NaN become null. */
char *kpti_put_double(char *out, double value);

#ifdef __cplusplus
}
#endif
#endif
