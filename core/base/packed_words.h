/* packed_words.h: makes the 64-bit words of a chunk small, and restores them. The words are the same again after both,
 * whatever they contain; they become small if they are events: the lower half of a word is a time, and sequences of
 * upper halves repeat.
 *
 *   head      kpti_packed_head
 *   sizes     2 bits for each word, the first in the lowest bits of a byte: how many bytes its lower half has, less 1
 *   uppers    uppers_bytes: the upper halves, as a sequence of
 *                 token      high 4 bits: number of literals; low 4 bits: words that repeat, less KPTI_PACKED_MIN_REPEAT
 *                 number     only if the literals are 15: how many more there are
 *                 numbers    the literals, an upper half each
 *                 number     how many words back the repetition begins; not after the last literal of a chunk
 *                 number     only if the low 4 bits are 15: how many more words repeat
 *   lowers    the rest: for each word the difference of its lower half to that of the word before, modulo 2^32 and
 *             without its lowest SHIFT bits, which are 0 in all differences; the lowest byte first
 *
 * A number has 7 bits in a byte, the lowest first; the highest bit means that another byte follows.
 *
 * The lower half of a word whose kind (bits 32–35) is in KPTI_PACKED_UNTIMED is no time. Its difference is that to the
 * last word of this kind, with all bits, and the next time does not depend on it. */
#ifndef KPTI_CORE_BASE_PACKED_WORDS_H
#define KPTI_CORE_BASE_PACKED_WORDS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    KPTI_PACKED_FORMAT = 4, /* added to the format of a chunk whose words are packed … */
    KPTI_PACKED_NEWEST = 3, /* … which may be this one or an older one */
    KPTI_PACKED_MIN_REPEAT = 4,
    KPTI_PACKED_MAX_WORDS = 1 << 20, /* of one chunk */
    KPTI_PACKED_UNTIMED = 1 << 12 | 1 << 13 | 1 << 15,
    KPTI_PACKED_KINDS = 16
};

/* In the byte order of the machine, as the words are. */
typedef struct kpti_packed_head {
    uint32_t count; /* of words */
    uint32_t uppers_bytes;
    uint32_t shift;
    uint32_t all_timed; /* not 0: no word has a kind in KPTI_PACKED_UNTIMED */
} kpti_packed_head;

/* Space for packing: the places of words by the hash of the sequence that begins with them. */
typedef struct kpti_packer {
    uint32_t places[1 << 12];
} kpti_packer;

/* Returns the most bytes that COUNT words can take. */
static inline size_t kpti_packed_bound(uint32_t count)
{
    return sizeof(kpti_packed_head) + (size_t)count * 10 + 64;
}

/* Packs COUNT words, at most KPTI_PACKED_MAX_WORDS, to OUT, which has space for kpti_packed_bound. Returns the size. */
size_t kpti_pack_words(kpti_packer *packer, const uint64_t *words, uint32_t count, void *out);

/* Returns how many words SIZE bytes at PACKED hold, or 0 if they are no packed words. They are at most SIZE. */
uint32_t kpti_packed_count(const void *packed, size_t size);

/* Restores the first word. Returns 0 if there is none, or if the bytes are damaged. Reads only the SIZE bytes at PACKED. */
int kpti_unpack_first_word(const void *packed, size_t size, uint64_t *word);

/* Restores the words to WORDS, which has space for COUNT, the result of kpti_packed_count. Returns how many it restored:
 * fewer if the bytes are damaged. Reads only the SIZE bytes at PACKED. */
uint32_t kpti_unpack_words(const void *packed, size_t size, uint64_t *words, uint32_t count);

#ifdef __cplusplus
}
#endif
#endif
