#include "writers/encode/json_text.h"

#include <math.h>
#include <stdio.h>

#include "core/base/utf8.h"

// clang-format off
#define TEN(d) d "0" d "1" d "2" d "3" d "4" d "5" d "6" d "7" d "8" d "9"
#define HUNDRED(d) TEN(d "0") TEN(d "1") TEN(d "2") TEN(d "3") TEN(d "4") \
                   TEN(d "5") TEN(d "6") TEN(d "7") TEN(d "8") TEN(d "9")
const char kpti_thousand[4001] =
    HUNDRED(".0") HUNDRED(".1") HUNDRED(".2") HUNDRED(".3") HUNDRED(".4")
    HUNDRED(".5") HUNDRED(".6") HUNDRED(".7") HUNDRED(".8") HUNDRED(".9");
// clang-format on

char *kpti_put_u64_slow(char *out, uint64_t value)
{
    const uint64_t max = 1000000000;
    uint32_t low = (uint32_t)(value % max);
    out = kpti_put_u64(out, value / max);
    out = kpti_put_three(out, low / 1000000);
    out = kpti_put_three(out, low / 1000 % 1000);
    return kpti_put_three(out, low % 1000);
}

static char *escape_ascii(char *out, unsigned char c)
{
    static const char plain[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* pairs: the character, its escape */
    static const char hex[] = "0123456789abcdef";
    *out++ = '\\';
    for (size_t i = 0; i + 1 < sizeof plain; i += 2) {
        if (c != (unsigned char)plain[i]) continue;
        *out++ = plain[i + 1];
        return out;
    }
    *out++ = 'u';
    *out++ = '0';
    *out++ = '0';
    *out++ = hex[c >> 4];
    *out++ = hex[c & 15];
    return out;
}

/* Returns 1 if all eight bytes are ASCII that needs no escape. It may return 0 for a plain byte next to a byte
 * that is not plain. */
static int are_plain(uint64_t bytes)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t quotes = bytes ^ ones * '"';
    const uint64_t backslashes = bytes ^ ones * '\\';
    const uint64_t odd = (bytes - ones * 0x20) | (quotes - ones) | (backslashes - ones) | bytes;
    return !(odd & ones * 0x80);
}

char *kpti_json_escape(char *out, const char *text, size_t size)
{
    const unsigned char *at = (const unsigned char *)text;
    const unsigned char *end = size ? at + size : at;
    while (at < end) {
        uint64_t bytes;
        if ((size_t)(end - at) >= sizeof bytes) {
            memcpy(&bytes, at, sizeof bytes);
            if (are_plain(bytes)) {
                memcpy(out, &bytes, sizeof bytes);
                out += sizeof bytes;
                at += sizeof bytes;
                continue;
            }
        }
        if (*at < 0x20 || *at == '"' || *at == '\\')
            out = escape_ascii(out, *at++);
        else
            out = kpti_utf8_put(out, &at, end);
    }
    return out;
}

/* Stores the leading digits of VALUE, unless there are none (the last digits would then have leading zeroes),
 * or they do not fit. */
static void keep_digits(kpti_near *last, uint64_t value, uint64_t count)
{
    char digits[KPTI_JSON_MAX_NUMBER] = "";
    size_t size = (size_t)(kpti_put_u64(digits, value / count) - digits);
    if (value < count || size > sizeof last->digits || value > UINT64_MAX - count) return;
    last->first = value - value % count;
    last->count = count;
    last->size = (uint32_t)size;
    memcpy(last->digits, digits, sizeof last->digits);
}

char *kpti_put_near_slow(char *out, uint64_t value, kpti_near *last)
{
    keep_digits(last, value, 1000);
    return kpti_put_u64(out, value);
}

char *kpti_put_ns_near_slow(char *out, uint64_t ns, kpti_near *last)
{
    keep_digits(last, ns, 1000000);
    return kpti_put_u64(out, ns);
}

char *kpti_put_us_near_slow(char *out, uint64_t ns, kpti_near *last)
{
    keep_digits(last, ns, 1000000);
    return kpti_put_us(out, ns);
}

char *kpti_put_double(char *out, double value)
{
    static const char none[] = {'n', 'u', 'l', 'l'};
    char digits[KPTI_JSON_MAX_NUMBER + 16];
    char *begin = out;
    if (!isfinite(value)) {
        memcpy(out, none, sizeof none);
        return out + sizeof none;
    }
    (void)snprintf(digits, sizeof digits, "%.17g", value);
    for (const char *at = digits; *at; at++) {
        int is_sign = *at == '-' || *at == '+' || *at == 'e';
        if (is_sign || (*at >= '0' && *at <= '9'))
            *out++ = *at;
        else if (out == begin || out[-1] != '.')
            *out++ = '.'; /* the decimal point of the locale */
    }
    return out;
}
