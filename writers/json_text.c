#include "json_text.h"

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
    const uint64_t most = 1000000000;
    uint32_t low = (uint32_t)(value % most);
    out = kpti_put_u64(out, value / most);
    out = kpti_put_three(out, low / 1000000);
    out = kpti_put_three(out, low / 1000 % 1000);
    return kpti_put_three(out, low % 1000);
}

/* How long a sequence is that begins so, and between what its second byte must lie (Unicode 15,
 * table 3-7): that leaves out overlong forms, surrogates and what lies beyond U+10FFFF. */
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

/* How many of the SIZE bytes at TEXT belong together; VALID tells whether they are a character. */
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

char *kpti_json_escape(char *out, const char *text, size_t size)
{
    static const char replacement[] = {'\xEF', '\xBF', '\xBD'}; /* U+FFFD */
    const unsigned char *at = (const unsigned char *)text;
    const unsigned char *end = size ? at + size : at;
    while (at < end) {
        int valid = 1;
        size_t length = *at < 0x80 ? 1 : measure(at, (size_t)(end - at), &valid);
        if (*at < 0x20 || *at == '"' || *at == '\\') {
            out = escape_ascii(out, *at);
        } else if (valid) {
            memcpy(out, at, length);
            out += length;
        } else {
            memcpy(out, replacement, sizeof replacement);
            out += sizeof replacement;
        }
        at += length;
    }
    return out;
}
