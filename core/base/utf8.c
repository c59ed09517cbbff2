#include "core/base/utf8.h"

#include <string.h>

#include "core/base/assert.h"

/* The length of a sequence whose first byte is between FIRST and LAST, and the range of its second
 * byte (Unicode 15, table 3-7). The range excludes overlong forms, surrogates and code points
 * beyond U+10FFFF. */
typedef struct sequence {
    unsigned char first;
    unsigned char last;
    unsigned char length;
    unsigned char second_from;
    unsigned char second_to;
} sequence;

static const sequence sequences[] = {
    {0xC2, 0xDF, 2, 0x80, 0xBF}, {0xE0, 0xE0, 3, 0xA0, 0xBF}, {0xE1, 0xEC, 3, 0x80, 0xBF},
    {0xED, 0xED, 3, 0x80, 0x9F}, {0xEE, 0xEF, 3, 0x80, 0xBF}, {0xF0, 0xF0, 4, 0x90, 0xBF},
    {0xF1, 0xF3, 4, 0x80, 0xBF}, {0xF4, 0xF4, 4, 0x80, 0x8F},
};
enum { SEQUENCES = sizeof sequences / sizeof sequences[0] };

/* Returns how many of the SIZE bytes at TEXT belong together. *VALID receives whether they are a
 * character. */
static size_t measure(const unsigned char *text, size_t size, int *valid)
{
    size_t length = 1;
    *valid = 0;
    for (int i = 0; i < SEQUENCES; i++) {
        const sequence *s = &sequences[i];
        if (text[0] < s->first || text[0] > s->last) continue;
        if (size < 2 || text[1] < s->second_from || text[1] > s->second_to) return 1;
        for (length = 2; length < s->length; length++)
            if (length >= size || (text[length] & 0xC0) != 0x80) return length;
        *valid = 1;
        return length;
    }
    return length;
}

char *kpti_utf8_put(char *out, const unsigned char **from, const unsigned char *end)
{
    static const char replacement[] = {'\xEF', '\xBF', '\xBD'}; /* U+FFFD */
    int valid = 1;
    size_t length = **from < 0x80 ? 1 : measure(*from, (size_t)(end - *from), &valid);
    kpti_assert(*from + length <= end);
    memcpy(out, valid ? (const char *)*from : replacement, valid ? length : sizeof replacement);
    *from += length;
    return out + (valid ? length : sizeof replacement);
}

char *kpti_utf8_copy(char *out, const char *text, size_t size)
{
    const unsigned char *at = (const unsigned char *)text;
    const unsigned char *end = size ? at + size : at;
    const char *const begin = out;
    while (at < end)
        out = kpti_utf8_put(out, &at, end);
    kpti_assert((size_t)(out - begin) <= size * KPTI_UTF8_MAX_GROWTH);
    return out;
}
