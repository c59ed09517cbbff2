/* huffman.h: prefix codes that take the fewest bits for given frequencies, with no code longer than a limit
 * (where the limit matters, nearly the fewest). Any thread. Only deflate uses this. */
#ifndef KPTI_WRITERS_DEFLATE_HUFFMAN_H
#define KPTI_WRITERS_DEFLATE_HUFFMAN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { KPTI_HUFFMAN_MOST_SYMBOLS = 288, KPTI_HUFFMAN_MOST_FREQUENCY = (1 << 23) - 1 };

typedef struct kpti_code {
    uint16_t bits; /* the first one lowest, as deflate sends them */
    uint16_t size; /* 0: the symbol does not occur */
} kpti_code;

/* Codes of COUNT symbols, at least 2, numbered as deflate does it. The code is complete: it has at least two
 * symbols, of which some may have the frequency 0, since decoders need not take a code of one. */
void kpti_huffman_make(const uint32_t *frequencies, uint32_t count, uint32_t most_bits,
                       kpti_code *codes);

#ifdef __cplusplus
}
#endif
#endif
