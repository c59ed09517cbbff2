#include "json_skip.h"

#include <stddef.h>
#include <string.h>

enum { MOST_LEVELS = 64 };

const char *kpti_json_skip_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
}

const char *kpti_json_skip_sign(const char *at, const char *end, char sign)
{
    at = kpti_json_skip_space(at, end);
    return at < end && *at == sign ? at + 1 : NULL;
}

static int is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Behind the backslash. */
static const char *skip_escape(const char *at, const char *end)
{
    if (at == end || !*at || !strchr("\"\\/bfnrtu", *at)) return NULL;
    if (*at++ != 'u') return at;
    for (int i = 0; i < 4; i++, at++)
        if (at == end || !is_hex(*at)) return NULL;
    return at;
}

const char *kpti_json_skip_string(const char *at, const char *end)
{
    if (at == end || *at++ != '"') return NULL;
    while (at && at < end) {
        if (*at == '"') return at + 1;
        if ((unsigned char)*at < 0x20) return NULL;
        at = *at == '\\' ? skip_escape(at + 1, end) : at + 1;
    }
    return NULL;
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

/* What is between BRACKETS, from behind the first of them. */
static const char *skip_members(const char *at, const char *end, char close, int levels)
{
    const char *empty = kpti_json_skip_sign(at, end, close);
    if (empty) return empty;
    for (;;) {
        const char *next;
        if (close == '}') {
            at = kpti_json_skip_string(kpti_json_skip_space(at, end), end);
            if (at) at = kpti_json_skip_sign(at, end, ':');
            if (!at) return NULL;
        }
        at = skip_nested(at, end, levels);
        if (!at) return NULL;
        next = kpti_json_skip_sign(at, end, ',');
        if (!next) return kpti_json_skip_sign(at, end, close);
        at = next;
    }
}

static const char *skip_nested(const char *at, const char *end, int levels)
{
    at = kpti_json_skip_space(at, end);
    if (at == end || levels == 0) return NULL;
    switch (*at) {
    case '"':
        return kpti_json_skip_string(at, end);
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
    return skip_nested(at, end, MOST_LEVELS);
}
