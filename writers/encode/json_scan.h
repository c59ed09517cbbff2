/* json_scan.h: skips over JSON text without building values. It is strict: the functions return NULL for text
 * that is not valid JSON, or not complete. */
#ifndef KPTI_WRITERS_ENCODE_JSON_SCAN_H
#define KPTI_WRITERS_ENCODE_JSON_SCAN_H

#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each function begins at AT, never reads at END or after it, and returns the end of the item in its name, or
 * NULL. */
const char *kpti_json_skip_space(const char *at, const char *end); /* never NULL */
const char *kpti_json_skip_string(const char *at, const char *end);
/* Skips any value with the white space before it. Values may be nested 64 levels deep. */
const char *kpti_json_skip_value(const char *at, const char *end);
/* Skips white space and this character. */
const char *kpti_json_skip_sign(const char *at, const char *end, char sign);

/* A member of an object. */
typedef struct kpti_json_member {
    const char *key; /* with quotes */
    const char *key_end;
    const char *value;
    const char *value_end;
} kpti_json_member;

/* Skips one member, after a bracket or a comma. */
const char *kpti_json_skip_member(const char *at, const char *end, kpti_json_member *out);

/* Returns whether a string, passed with its quotes, is TEXT, written without escapes. For a literal this
 * compares a length and a few bytes. */
static inline int kpti_json_is(const char *string, const char *string_end, const char *text)
{
    const size_t size = strlen(text);
    return (size_t)(string_end - string) == size + 2 && memcmp(string + 1, text, size) == 0;
}

/* Reads a whole number, not negative, that fills all of AT to END. Returns whether it is one. */
int kpti_json_whole(const char *at, const char *end, int64_t *out);

#ifdef __cplusplus
}
#endif
#endif
