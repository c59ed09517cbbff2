/* utf8.h: conversion of arbitrary bytes to valid UTF-8. Each maximal invalid part becomes one
 * U+FFFD, as with Python's "replace". No function here allocates or fails; the caller provides the
 * buffer. */
#ifndef KPTI_CORE_BASE_UTF8_H
#define KPTI_CORE_BASE_UTF8_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Maximum number of output bytes per input byte. */
enum { KPTI_UTF8_MAX_GROWTH = 3 };

/* Writes the character at *FROM, which is before END, advances *FROM past it, and returns the end
 * of the output. */
char *kpti_utf8_put(char *out, const unsigned char **from, const unsigned char *end);

/* Writes the SIZE bytes at TEXT, and returns the end of the output. */
char *kpti_utf8_copy(char *out, const char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
