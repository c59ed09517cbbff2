/* huffman.h: makes prefix codes that take the fewest bits for given frequencies, with no code longer than a
 * limit. If the limit applies, the result is nearly optimal. Any thread. Only deflate uses this. */
#ifndef KPTI_WRITERS_DEFLATE_HUFFMAN_H
#define KPTI_WRITERS_DEFLATE_HUFFMAN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { KPTI_HUFFMAN_MAX_SYMBOLS = 288, KPTI_HUFFMAN_MAX_FREQUENCY = (1 << 23) - 1 };

typedef struct kpti_code {
    uint16_t bits; /* first bit lowest, as in deflate */
    uint16_t size; /* 0: the symbol does not occur */
} kpti_code;

/* Makes the codes of COUNT symbols, at least 2, numbered as in deflate. The code is complete. It has at least
 * two symbols, if need be with the frequency 0, since decoders need not accept a code with one symbol. */
void kpti_huffman_make(const uint32_t *frequencies, uint32_t count, uint32_t most_bits,
                       kpti_code *codes);

#ifdef __cplusplus
}
#endif
#endif
