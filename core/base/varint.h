/* varint.h: numbers of 7 bits in a byte, the lowest bits first; all bytes but the last have the highest bit. */
#ifndef KPTI_CORE_BASE_VARINT_H
#define KPTI_CORE_BASE_VARINT_H

#include <stdint.h>

enum { KPTI_MAX_VARINT = 10 };

/* Writes NUMBER to AT, which has space for it, and returns the end. */
static inline char *kpti_put_varint(char *at, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        *at++ = (char)(number | 0x80);
    *at++ = (char)number;
    return at;
}

/* Reads a number that kpti_put_varint wrote, and returns its end. */
static inline const char *kpti_read_varint(const char *at, uint64_t *number)
{
    *number = 0;
    for (unsigned shift = 0;; shift += 7) {
        *number |= (uint64_t)(*at & 0x7F) << shift;
        if (!(*at++ & 0x80)) return at;
    }
}

#endif
