/* json_skip.h: goes over JSON text without making anything of it. Strict: what is no JSON, or not
 * whole, is NULL. */
#ifndef KPTI_JSON_SKIP_H
#define KPTI_JSON_SKIP_H

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

#ifdef __cplusplus
}
#endif
#endif
