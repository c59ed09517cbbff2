/* pack_words.c: kpti_pack_words. Its time is part of what recording an event takes: 6 ns
 * a word on a 2.5 GHz x86-64. */
#include <string.h>

#include "core/base/assert.h"
#include "core/base/hash.h"
#include "core/base/packed_words.h"
#include "core/base/varint.h"

/* Of the words in a repetition every so many gets a place: more places find little more, and take more time. */
enum { PLACE_EVERY = 8 };

/* What the lower halves so far have left. */
typedef struct lowers {
    uint32_t time;
    uint32_t shift;
    uint32_t lost;    /* all differences of times, or-ed */
    uint32_t untimed; /* some words have no time */
    uint32_t data[KPTI_PACKED_KINDS];
} lowers;

static uint32_t upper(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static int is_untimed(uint64_t word)
{
    return KPTI_PACKED_UNTIMED >> (upper(word) % KPTI_PACKED_KINDS) & 1;
}

static unsigned char *put_number(unsigned char *out, uint32_t number)
{
    return (unsigned char *)kpti_put_varint((char *)out, number);
}

/* Writes LITERALS words from WORDS on, and a repetition of REPEATED words from DISTANCE words back, if not 0. */
static unsigned char *put_sequence(unsigned char *out, const uint64_t *words, uint32_t literals,
                                   uint32_t repeated, uint32_t distance)
{
    enum { FULL = 15 };
    const uint32_t more = repeated ? repeated - KPTI_PACKED_MIN_REPEAT : 0;
    *out++ =
        (unsigned char)((literals < FULL ? literals : FULL) << 4 | (more < FULL ? more : FULL));
    if (literals >= FULL) out = put_number(out, literals - FULL);
    for (uint32_t i = 0; i < literals; i++)
        out = put_number(out, upper(words[i]));
    if (!repeated) return out;
    out = put_number(out, distance);
    return more >= FULL ? put_number(out, more - FULL) : out;
}

static uint32_t hash_of(const uint64_t *words)
{
    const uint64_t a = words[0] >> 32 | (words[1] & ~UINT64_C(0xffffffff));
    const uint64_t b = words[2] >> 32 | (words[3] & ~UINT64_C(0xffffffff));
    return (uint32_t)((a * KPTI_HASH_FACTOR ^ b * UINT64_C(0xd6e8feb86659fd93)) >> 52);
}

/* Returns how many upper halves from A on, which is before B, are those from B on, before END. */
static uint32_t repeats(const uint64_t *a, const uint64_t *b, const uint64_t *end)
{
    const uint64_t *at = b;
    while (at < end && upper(*a) == upper(*at)) {
        a++;
        at++;
    }
    return (uint32_t)(at - b);
}

static unsigned char *put_uppers(kpti_packer *packer, const uint64_t *words, uint32_t count,
                                 unsigned char *out)
{
    uint32_t done = 0; /* the words before it are written */
    uint32_t at = 0;
    memset(packer->places, 0, sizeof packer->places);
    while (at + KPTI_PACKED_MIN_REPEAT <= count) {
        uint32_t *const place = &packer->places[hash_of(words + at)];
        const uint32_t before = *place;
        const uint32_t length =
            before < at ? repeats(words + before, words + at, words + count) : 0;
        *place = at;
        if (length < KPTI_PACKED_MIN_REPEAT) {
            at++;
            continue;
        }
        out = put_sequence(out, words + done, at - done, length, at - before);
        for (uint32_t i = at + PLACE_EVERY; i < at + length && i + KPTI_PACKED_MIN_REPEAT <= count;
             i += PLACE_EVERY)
            packer->places[hash_of(words + i)] = i;
        done = at += length;
    }
    return done < count ? put_sequence(out, words + done, count - done, 0, 0) : out;
}

/* Returns how many of their lowest bits the first times have as 0. */
static uint32_t guess_shift(const uint64_t *words, uint32_t count)
{
    enum { SAMPLE = 64 };
    uint32_t any = UINT32_C(1) << 31;
    for (uint32_t i = 0; i < count && i < SAMPLE; i++)
        any |= is_untimed(words[i]) ? 0 : (uint32_t)words[i];
    return (uint32_t)__builtin_ctz(any);
}

/* Writes to OUT the difference of WORD's lower half. Returns how many bytes it has, less 1. */
static inline __attribute__((always_inline)) uint32_t put_lower(lowers *l, uint64_t word,
                                                                unsigned char *out)
{
    const uint32_t kind = upper(word) % KPTI_PACKED_KINDS;
    const uint32_t lower = (uint32_t)word;
    uint32_t difference = lower - l->time;
    if (KPTI_PACKED_UNTIMED >> kind & 1) {
        difference = lower - l->data[kind];
        l->data[kind] = lower;
        l->untimed = 1;
    } else {
        l->lost |= difference;
        difference >>= l->shift;
        l->time = lower;
    }
    for (uint32_t b = 0; b < 4; b++) /* one store on the processors that can */
        out[b] = (unsigned char)(difference >> (8 * b));
    return (31 - (uint32_t)__builtin_clz(difference | 1)) / 8;
}

/* Writes the sizes and the differences of up to four words. Returns the end. */
static inline __attribute__((always_inline)) unsigned char *
put_four(lowers *l, const uint64_t *words, uint32_t count, unsigned char *sizes, unsigned char *out)
{
    uint32_t bits = 0;
#pragma GCC unroll 4
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t more = put_lower(l, words[i], out);
        out += more + 1;
        bits |= more << (2 * i);
    }
    *sizes = (unsigned char)bits;
    return out;
}

/* Completes HEAD, and sets *END. Returns 0 if not all differences of times have the shift's zeroes. */
static int put_lowers(kpti_packed_head *head, const uint64_t *words, unsigned char *sizes,
                      unsigned char *out, unsigned char **end)
{
    lowers l = {0, head->shift, 0, 0, {0}};
    uint32_t done = 0;
    for (; done + 4 <= head->count; done += 4)
        out = put_four(&l, words + done, 4, sizes + done / 4, out);
    if (done < head->count)
        out = put_four(&l, words + done, head->count - done, sizes + done / 4, out);
    head->all_timed = !l.untimed;
    *end = out;
    return !(l.lost & ((UINT32_C(1) << head->shift) - 1));
}

size_t kpti_pack_words(kpti_packer *packer, const uint64_t *words, uint32_t count, void *out)
{
    unsigned char *const sizes = (unsigned char *)out + sizeof(kpti_packed_head);
    unsigned char *const uppers = sizes + (count + 3) / 4;
    unsigned char *const rest = put_uppers(packer, words, count, uppers);
    kpti_packed_head head = {count, (uint32_t)(rest - uppers), guess_shift(words, count), 0};
    unsigned char *end;
    kpti_assert(count <= KPTI_PACKED_MAX_WORDS);
    if (!put_lowers(&head, words, sizes, rest, &end)) {
        head.shift = 0;
        (void)put_lowers(&head, words, sizes, rest, &end);
    }
    memcpy(out, &head, sizeof head);
    kpti_assert((size_t)(end - (unsigned char *)out) <= kpti_packed_bound(count));
    return (size_t)(end - (unsigned char *)out);
}
