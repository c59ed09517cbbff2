/* json_scan.h: goes over JSON text without making anything of it. Strict: what is no JSON, or not
 * whole, is NULL. */
#ifndef KPTI_WRITERS_ENCODE_JSON_SCAN_H
#define KPTI_WRITERS_ENCODE_JSON_SCAN_H

#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each begins at AT, reads nothing from END on, and returns where what it names ended, or NULL. */
const char *kpti_json_skip_space(const char *at, const char *end); /* never NULL */
const char *kpti_json_skip_string(const char *at, const char *end);
/* Any value, white space in front of it too. Values in values in values … 64 levels deep. */
const char *kpti_json_skip_value(const char *at, const char *end);
/* White space and this character. */
const char *kpti_json_skip_sign(const char *at, const char *end, char sign);

/* A member of an object. */
typedef struct kpti_json_member {
    const char *key; /* with its quotes */
    const char *key_end;
    const char *value;
    const char *value_end;
} kpti_json_member;

/* One of them, behind a bracket or a comma. */
const char *kpti_json_skip_member(const char *at, const char *end, kpti_json_member *out);

/* Whether a string, with its quotes, is TEXT, written without escapes. For a literal this is a number and
 * few bytes to compare. */
static inline int kpti_json_is(const char *string, const char *string_end, const char *text)
{
    const size_t size = strlen(text);
    return (size_t)(string_end - string) == size + 2 && memcmp(string + 1, text, size) == 0;
}

/* A whole number, not below 0, that takes up all between AT and END. Returns whether it is one. */
int kpti_json_whole(const char *at, const char *end, int64_t *out);

#ifdef __cplusplus
}
#endif
#endif
