/* utf8.h: bytes of any kind as valid UTF-8: what is none becomes U+FFFD, one for each maximal part,
 * as Python's "replace" does. Nothing here allocates or fails; the caller gives the room. */
#ifndef KPTI_CORE_BASE_UTF8_H
#define KPTI_CORE_BASE_UTF8_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Most bytes that one byte turns into. */
enum { KPTI_UTF8_MOST_GROWTH = 3 };

/* Writes the character at *FROM, which lies before END, moves *FROM behind it, and returns where it
 * ended. */
char *kpti_utf8_put(char *out, const unsigned char **from, const unsigned char *end);

/* Writes the SIZE bytes at TEXT, and returns where it ended. */
char *kpti_utf8_copy(char *out, const char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
