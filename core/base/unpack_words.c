/* unpack_words.c: kpti_packed_count, kpti_unpack_first_word and kpti_unpack_words. The bytes may have any content:
 * every read and write is checked. Every command that reads a file takes its time: 4 ns a word on a 2.5 GHz x86-64. */
#include <string.h>

#include "core/base/packed_words.h"

/* The bytes that are left of a section. */
typedef struct section {
    const unsigned char *at;
    const unsigned char *end;
} section;

/* Returns 0 if the number is truncated, or larger than 32 bits. */
static inline int take_number(section *s, uint32_t *out)
{
    uint64_t number = 0;
    for (unsigned bits = 0; bits < 35 && s->at < s->end; bits += 7) {
        const unsigned char byte = *s->at++;
        number |= (uint64_t)(byte & 127) << bits;
        if (byte & 128) continue;
        *out = (uint32_t)number;
        return number <= UINT32_MAX;
    }
    return 0;
}

/* Reads the part of a count that is not in its token. MOST: the largest count. */
static int take_more(section *s, uint32_t most, uint32_t *count)
{
    uint32_t more;
    if (!take_number(s, &more) || *count > most || more > most - *count) return 0;
    *count += more;
    return 1;
}

/* Writes to WORDS, which has space for SPACE words, REPEATED words from DISTANCE words before on. They may overlap. */
static inline void repeat(uint64_t *words, uint32_t distance, uint32_t repeated, uint32_t space)
{
    enum { BLOCK = 4 };
    const uint64_t *const from = words - distance;
    uint32_t i = 0;
    if (distance >= BLOCK && space - repeated >= BLOCK) /* may write a block too much */
        for (; i < repeated; i += BLOCK)
            memcpy(words + i, from + i, BLOCK * sizeof *words);
    for (; i < repeated; i++)
        words[i] = from[i];
}

/* Restores the upper halves, with lower halves of 0. Returns how many. */
static uint32_t take_uppers(section s, uint64_t *words, uint32_t count)
{
    enum { FULL = 15 };
    uint32_t done = 0;
    while (done < count && s.at < s.end) {
        const uint32_t token = *s.at++;
        uint32_t literals = token >> 4;
        uint32_t repeated = (token & FULL) + KPTI_PACKED_MIN_REPEAT;
        uint32_t distance;
        if (literals == FULL && !take_more(&s, count - done, &literals)) return done;
        if (literals > count - done) return done;
        for (; literals; literals--) {
            uint32_t literal;
            if (!take_number(&s, &literal)) return done;
            words[done++] = (uint64_t)literal << 32;
        }
        if (done == count) break;
        if (!take_number(&s, &distance) || !distance || distance > done) return done;
        if ((token & FULL) == FULL && !take_more(&s, count - done, &repeated)) return done;
        if (repeated > count - done) return done;
        repeat(words + done, distance, repeated, count - done);
        done += repeated;
    }
    return done;
}

/* What the lower halves so far have left. */
typedef struct lowers {
    uint32_t time; /* without the lowest bits */
    uint32_t unit; /* 1 << shift */
    uint32_t data[KPTI_PACKED_KINDS];
} lowers;

/* ALL_TIMED is a constant in each caller. */
static inline __attribute__((always_inline)) uint64_t restore(lowers *l, uint64_t word,
                                                              uint32_t difference, int all_timed)
{
    const uint32_t kind = (uint32_t)(word >> 32) % KPTI_PACKED_KINDS;
    if (!all_timed && KPTI_PACKED_UNTIMED >> kind & 1) return word | (l->data[kind] += difference);
    return word | (uint32_t)((l->time += difference) * l->unit);
}

/* Reads four bytes, and moves behind those that the SIZE, less 1, says. */
static inline __attribute__((always_inline)) uint32_t take_lower(const unsigned char **at,
                                                                 uint32_t size)
{
    const unsigned char *const from = *at;
    *at += size + 1;
    return (from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24) &
           (UINT32_MAX >> (24 - 8 * size));
}

/* Completes words, four at a time, while there are as many bytes as four can have. Returns how many. */
static inline __attribute__((always_inline)) uint32_t take_fours(lowers *l,
                                                                 const unsigned char *sizes,
                                                                 section *s, uint64_t *words,
                                                                 uint32_t count, int all_timed)
{
    enum { MAX_BYTES = 16 };
    const unsigned char *at = s->at;
    uint32_t done = 0;
    lowers local = *l;
    for (; done + 4 <= count && s->end - at >= MAX_BYTES; done += 4) {
        const uint32_t all = *sizes++;
        const uint32_t a = take_lower(&at, all & 3);
        const uint32_t b = take_lower(&at, all >> 2 & 3);
        const uint32_t c = take_lower(&at, all >> 4 & 3);
        const uint32_t d = take_lower(&at, all >> 6);
        words[done] = restore(&local, words[done], a, all_timed);
        words[done + 1] = restore(&local, words[done + 1], b, all_timed);
        words[done + 2] = restore(&local, words[done + 2], c, all_timed);
        words[done + 3] = restore(&local, words[done + 3], d, all_timed);
    }
    s->at = at;
    *l = local;
    return done;
}

/* Completes the words with their lower halves. Returns how many. */
static uint32_t take_lowers(const unsigned char *sizes, section s, const kpti_packed_head *head,
                            uint64_t *words, uint32_t count)
{
    lowers l = {0, UINT32_C(1) << head->shift, {0}};
    uint32_t done = head->all_timed ? take_fours(&l, sizes, &s, words, count, 1)
                                    : take_fours(&l, sizes, &s, words, count, 0);
    for (; done < count; done++) {
        const uint32_t more = sizes[done / 4] >> (2 * (done % 4)) & 3;
        uint32_t difference = 0;
        if (s.end - s.at <= (ptrdiff_t)more) return done;
        for (uint32_t i = 0; i <= more; i++)
            difference |= (uint32_t)*s.at++ << (8 * i);
        words[done] = restore(&l, words[done], difference, head->all_timed != 0);
    }
    return done;
}

static size_t sizes_bytes(uint32_t count)
{
    return ((size_t)count + 3) / 4;
}

uint32_t kpti_packed_count(const void *packed, size_t size)
{
    kpti_packed_head head;
    size_t left = size;
    if (size < sizeof head) return 0;
    memcpy(&head, packed, sizeof head);
    left -= sizeof head;
    if (head.count > KPTI_PACKED_MAX_WORDS || head.shift > 31 || head.uppers_bytes > left) return 0;
    left -= head.uppers_bytes;
    /* a lower half has at least one byte */
    return left >= sizes_bytes(head.count) + head.count ? head.count : 0;
}

int kpti_unpack_first_word(const void *packed, size_t size, uint64_t *word)
{
    const uint32_t count = kpti_packed_count(packed, size);
    const unsigned char *const sizes = (const unsigned char *)packed + sizeof(kpti_packed_head);
    const unsigned char *const uppers = sizes + sizes_bytes(count);
    kpti_packed_head head;
    section s;
    uint32_t token;
    uint32_t literal;
    if (!count) return 0;
    memcpy(&head, packed, sizeof head);
    s = (section){uppers, uppers + head.uppers_bytes};
    if (s.at == s.end) return 0;
    token = *s.at++;
    if (!(token >> 4)) return 0; /* there is nothing before it to be repeated */
    if (token >> 4 == 15 && !take_number(&s, &literal)) return 0;
    if (!take_number(&s, &literal)) return 0;
    *word = (uint64_t)literal << 32;
    s = (section){uppers + head.uppers_bytes, (const unsigned char *)packed + size};
    return take_lowers(sizes, s, &head, word, 1) == 1;
}

uint32_t kpti_unpack_words(const void *packed, size_t size, uint64_t *words, uint32_t count)
{
    const unsigned char *const sizes = (const unsigned char *)packed + sizeof(kpti_packed_head);
    const unsigned char *const uppers = sizes + sizes_bytes(count);
    kpti_packed_head head;
    section lowers_section;
    if (!count || kpti_packed_count(packed, size) != count) return 0;
    memcpy(&head, packed, sizeof head);
    lowers_section = (section){uppers + head.uppers_bytes, (const unsigned char *)packed + size};
    count = take_uppers((section){uppers, lowers_section.at}, words, count);
    return take_lowers(sizes, lowers_section, &head, words, count);
}
