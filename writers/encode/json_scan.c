#include "writers/encode/json_scan.h"

#include <stddef.h>

enum { MAX_LEVELS = 64 };

static inline const char *skip_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
}

static inline const char *skip_sign(const char *at, const char *end, char sign)
{
    at = skip_space(at, end);
    return at < end && *at == sign ? at + 1 : NULL;
}

const char *kpti_json_skip_space(const char *at, const char *end)
{
    return skip_space(at, end);
}

const char *kpti_json_skip_sign(const char *at, const char *end, char sign)
{
    return skip_sign(at, end, sign);
}

static int is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* AT is after the backslash. */
static const char *skip_escape(const char *at, const char *end)
{
    if (at == end || !*at || !strchr("\"\\/bfnrtu", *at)) return NULL;
    if (*at++ != 'u') return at;
    for (int i = 0; i < 4; i++, at++)
        if (at == end || !is_hex(*at)) return NULL;
    return at;
}

/* Skips plain bytes of a string, eight at a time, while SPECIAL is 0. SPECIAL has a bit for each byte that is a
 * quote, a backslash or below a space. */
static inline const char *skip_plain(const char *at, const char *end)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t highs = ones << 7;
    while (end - at >= 8) {
        uint64_t bytes;
        uint64_t quote;
        uint64_t slash;
        uint64_t special;
        memcpy(&bytes, at, sizeof bytes);
        quote = bytes ^ (ones * '"');
        slash = bytes ^ (ones * '\\');
        special = (((quote - ones) & ~quote) | ((slash - ones) & ~slash) |
                   ((bytes - ones * 0x20) & ~bytes)) &
                  highs;
        if (special) return at; /* the caller continues byte by byte */
        at += 8;
    }
    return at;
}

static inline const char *skip_string(const char *at, const char *end)
{
    if (at == end || *at++ != '"') return NULL;
    at = skip_plain(at, end);
    while (at && at < end) {
        if (*at == '"') return at + 1;
        if ((unsigned char)*at < 0x20) return NULL;
        at = *at == '\\' ? skip_escape(at + 1, end) : at + 1;
    }
    return NULL;
}

const char *kpti_json_skip_string(const char *at, const char *end)
{
    return skip_string(at, end);
}

static const char *skip_digits(const char *at, const char *end)
{
    const char *begin = at;
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at > begin ? at : NULL;
}

static const char *skip_number(const char *at, const char *end)
{
    if (at < end && *at == '-') at++;
    at = at < end && *at == '0' ? at + 1 : skip_digits(at, end);
    if (at && at < end && *at == '.') at = skip_digits(at + 1, end);
    if (!at || at == end || (*at != 'e' && *at != 'E')) return at;
    at++;
    if (at < end && (*at == '+' || *at == '-')) at++;
    return skip_digits(at, end);
}

static const char *skip_word(const char *at, const char *end, const char *word)
{
    size_t size = strlen(word);
    return (size_t)(end - at) >= size && memcmp(at, word, size) == 0 ? at + size : NULL;
}

static const char *skip_nested(const char *at, const char *end, int levels);

static const char *skip_member(const char *at, const char *end, int levels, kpti_json_member *out)
{
    out->key = skip_space(at, end);
    out->key_end = skip_string(out->key, end);
    at = out->key_end ? skip_sign(out->key_end, end, ':') : NULL;
    if (!at) return NULL;
    out->value = skip_space(at, end);
    out->value_end = skip_nested(out->value, end, levels);
    return out->value_end;
}

/* Skips everything up to and including CLOSE. AT is after the opening bracket. */
static const char *skip_members(const char *at, const char *end, char close, int levels)
{
    const char *empty = skip_sign(at, end, close);
    if (empty) return empty;
    for (;;) {
        const char *next;
        kpti_json_member member;
        at = close == '}' ? skip_member(at, end, levels, &member) : skip_nested(at, end, levels);
        if (!at) return NULL;
        next = skip_sign(at, end, ',');
        if (!next) return skip_sign(at, end, close);
        at = next;
    }
}

static const char *skip_nested(const char *at, const char *end, int levels)
{
    at = skip_space(at, end);
    if (at == end || levels == 0) return NULL;
    switch (*at) {
    case '"':
        return skip_string(at, end);
    case '{':
        return skip_members(at + 1, end, '}', levels - 1);
    case '[':
        return skip_members(at + 1, end, ']', levels - 1);
    case 't':
        return skip_word(at, end, "true");
    case 'f':
        return skip_word(at, end, "false");
    case 'n':
        return skip_word(at, end, "null");
    default:
        return skip_number(at, end);
    }
}

const char *kpti_json_skip_value(const char *at, const char *end)
{
    return skip_nested(at, end, MAX_LEVELS);
}

const char *kpti_json_skip_member(const char *at, const char *end, kpti_json_member *out)
{
    return skip_member(at, end, MAX_LEVELS, out);
}

int kpti_json_whole(const char *at, const char *end, int64_t *out)
{
    int64_t value = 0;
    if (at == end || end - at > 18 + 1) return 0;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9') return 0;
        value = value * 10 + (*at - '0');
    }
    *out = value;
    return 1;
}
