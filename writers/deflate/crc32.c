#include "writers/deflate/crc32.h"

#include <string.h>

/* The checksum is the remainder of a division of polynomials over GF(2), with the highest power in the lowest
 * bit. So a shift to the right multiplies by x. */
static const uint32_t divisor = 0xEDB88320;
static const uint32_t one = 0x80000000;

static uint32_t times_x(uint32_t a)
{
    return a >> 1 ^ (a & 1 ? divisor : 0);
}

void kpti_crc32_make(kpti_crc32_tables *t)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = times_x(crc);
        t->bytes[0][byte] = crc;
    }
    for (uint32_t byte = 0; byte < 256; byte++)
        for (int behind = 1; behind < KPTI_CRC32_STEP; behind++) {
            const uint32_t crc = t->bytes[behind - 1][byte];
            t->bytes[behind][byte] = t->bytes[0][crc & 0xFF] ^ crc >> 8;
        }
}

/* Returns the contribution of four bytes, the last one followed by BEHIND bytes. */
static inline uint32_t four(const kpti_crc32_tables *t, uint32_t word, int behind)
{
    return t->bytes[behind + 3][word & 0xFF] ^ t->bytes[behind + 2][word >> 8 & 0xFF] ^
           t->bytes[behind + 1][word >> 16 & 0xFF] ^ t->bytes[behind][word >> 24];
}

uint32_t kpti_crc32(const kpti_crc32_tables *t, uint32_t crc, const void *data, size_t size)
{
    const uint8_t *at = data;
    crc = ~crc;
    for (; size >= KPTI_CRC32_STEP; size -= KPTI_CRC32_STEP, at += KPTI_CRC32_STEP) {
        uint32_t words[4];
        memcpy(words, at, sizeof words); /* lowest byte first: bits.h checks the byte order */
        crc = four(t, words[0] ^ crc, 12) ^ four(t, words[1], 8) ^ four(t, words[2], 4) ^
              four(t, words[3], 0);
    }
    for (; size; size--)
        crc = t->bytes[0][(crc ^ *at++) & 0xFF] ^ crc >> 8;
    return ~crc;
}

static uint32_t times(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (; a; a <<= 1) {
        if (a & one) product ^= b;
        b = times_x(b);
    }
    return product;
}

uint32_t kpti_crc32_join(uint32_t a, uint32_t b, uint64_t b_size)
{
    uint32_t power = one >> 8; /* x to the 8th: a shift by one byte */
    uint32_t behind = one;
    for (; b_size; b_size >>= 1) {
        if (b_size & 1) behind = times(behind, power);
        power = times(power, power);
    }
    return times(a, behind) ^ b;
}
