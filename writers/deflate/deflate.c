#include "writers/deflate/deflate.h"

#include "core/base/assert.h"
#include "core/base/hash.h"

/* Measured on traces of torch and on our own (docs/torch.md), each value against its neighbours. Deeper chains
 * and more entered positions take more time than the saved bytes are worth; shorter chains lose more bytes than
 * they save time. */
enum {
    DEPTH = 8,      /* candidates compared */
    LAZY_DEPTH = 4, /* candidates compared one byte further on, when there is a match already */
    ENOUGH = 128,   /* length of a match that ends the search */
    ENTERED = 8,    /* positions of a match, after its first, at which later matches may begin */
    WORD = 8,
};

/* Positions are offsets in the part plus this value, so that position 0 is too far from all of them. */
enum { FIRST_POSITION = KPTI_DEFLATE_MAX_DISTANCE + 1 };

typedef struct match {
    uint32_t length; /* 0: no match */
    uint32_t distance;
} match;

typedef struct search {
    kpti_deflate *d;
    const uint8_t *data;
} search;

static inline uint64_t word_at(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static inline uint32_t half_word_at(const uint8_t *at)
{
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static inline uint32_t hash(const uint8_t *at)
{
    const uint64_t bytes = word_at(at) << 8 * (WORD - KPTI_DEFLATE_MIN_MATCH);
    return (uint32_t)(kpti_hash_spread(bytes) >> (64 - KPTI_DEFLATE_HASH_BITS));
}

static inline uint32_t alike(const uint8_t *a, const uint8_t *b, uint32_t max)
{
    uint32_t length = 0;
    for (; length + WORD <= max; length += WORD) {
        const uint64_t differ = word_at(a + length) ^ word_at(b + length);
        if (differ) return length + ((uint32_t)__builtin_ctzll(differ) >> 3);
    }
    while (length < max && a[length] == b[length])
        length++;
    return length;
}

/* Enters AT into the hash chains. Returns the position that was entered last with the same hash. */
static inline uint32_t enter(const search *s, const uint8_t *at)
{
    const uint32_t position = (uint32_t)(at - s->data) + FIRST_POSITION;
    uint32_t *head = &s->d->heads[hash(at)];
    const uint32_t before = *head;
    s->d->earlier[position % KPTI_DEFLATE_MAX_DISTANCE] = before;
    *head = position;
    return before;
}

/* Enters AT, and finds the longest match of more than ABOVE and at most MAX bytes. MAX must be larger than
 * ABOVE. */
static inline match find(const search *s, const uint8_t *at, uint32_t above, uint32_t max,
                         int depth)
{
    const uint32_t position = (uint32_t)(at - s->data) + FIRST_POSITION;
    uint32_t candidate = enter(s, at);
    match best = {0, 0};
    for (; depth && position - candidate <= KPTI_DEFLATE_MAX_DISTANCE; depth--) {
        const uint32_t distance = position - candidate;
        uint32_t next;
        /* First compare the bytes that a longer match needs at its end. */
        if (half_word_at(at - distance + above - 3) == half_word_at(at + above - 3)) {
            const uint32_t length = alike(at, at - distance, max);
            if (length > above) {
                best = (match){length, distance};
                above = length;
                if (length >= ENOUGH || length == max) break;
            }
        }
        next = s->d->earlier[candidate % KPTI_DEFLATE_MAX_DISTANCE];
        if (next >= candidate) break; /* a later position has overwritten the entry */
        candidate = next;
    }
    return best;
}

static inline uint32_t most_at(const uint8_t *at, const uint8_t *end)
{
    return end - at < KPTI_DEFLATE_MAX_LENGTH ? (uint32_t)(end - at) : KPTI_DEFLATE_MAX_LENGTH;
}

/* Searches for a longer match one byte further on, repeatedly, and moves M and AT to it. Returns the first
 * position that is not entered. */
static inline const uint8_t *improve(const search *s, const uint8_t **at, match *m,
                                     const uint8_t *stop, const uint8_t *end)
{
    const uint8_t *next = *at + 1;
    while (next < stop) {
        const uint32_t max = most_at(next, end);
        match longer;
        if (m->length >= max) break;
        longer = find(s, next++, m->length, max, LAZY_DEPTH);
        if (!longer.length) break;
        *m = longer;
        *at = next - 1;
    }
    return next;
}

/* Extends a match to equal bytes before it, and returns its new begin. Such bytes exist if the match was not
 * found earlier. */
static inline const uint8_t *extended(const search *s, const uint8_t *at, match *m,
                                      const uint8_t *begin)
{
    for (; at > begin && m->length < KPTI_DEFLATE_MAX_LENGTH; at--, m->length++)
        if (at - s->data <= (ptrdiff_t)m->distance || at[-1] != at[-1 - (ptrdiff_t)m->distance])
            break;
    return at;
}

static void count_literals(kpti_deflate_block *block, const uint8_t *at, const uint8_t *end)
{
    for (; at < end; at++)
        block->symbols[*at]++;
}

/* Finds the sequences for the bytes from BEGIN to END, and writes them as a block. */
static void put_block(const search *s, kpti_bits *bits, const uint8_t *begin, const uint8_t *end)
{
    kpti_deflate_block block = {begin, (size_t)(end - begin), s->d->sequences, 0, {0}, {0}};
    /* no match begins there or later */
    const uint8_t *stop = block.size < WORD ? begin : end - WORD + 1;
    const uint8_t *literals = begin; /* literals that are not in a sequence yet */
    const uint8_t *at = begin;
    while (at < stop) {
        match m = find(s, at, KPTI_DEFLATE_MIN_MATCH - 1, most_at(at, end), DEPTH);
        const uint8_t *next;
        const uint8_t *enough;
        if (!m.length) {
            at++;
            continue;
        }
        next = improve(s, &at, &m, stop, end);
        kpti_assert(m.distance <= (size_t)(at - s->data) && m.length <= (size_t)(end - at));
        at = extended(s, at, &m, literals);
        count_literals(&block, literals, at);
        block.symbols[KPTI_DEFLATE_LITERALS + 1 + kpti_deflate_length_slot(m.length)]++;
        block.distances[kpti_deflate_distance_slot(m.distance)]++;
        s->d->sequences[block.sequence_count++] =
            (kpti_sequence){(uint32_t)(at - literals), (uint16_t)m.length, (uint16_t)m.distance};
        literals = at += m.length;
        enough = at < stop ? at : stop;
        if (enough - next > ENTERED) enough = next + ENTERED;
        while (next < enough)
            (void)enter(s, next++);
    }
    count_literals(&block, literals, end);
    kpti_deflate_block_put(bits, &block);
}

size_t kpti_deflate_part(kpti_deflate *d, const void *data, size_t size, void *out)
{
    const search s = {d, data};
    const uint8_t *at = data;
    kpti_bits bits = {0, 0, out};
    kpti_assert(size <= KPTI_DEFLATE_MAX_PART);
    memset(d->heads, 0, sizeof d->heads);
    for (size_t left = size; left;) { /* blocks of about equal size */
        const size_t blocks = (left + KPTI_DEFLATE_BLOCK_BYTES - 1) / KPTI_DEFLATE_BLOCK_BYTES;
        const size_t step = left / blocks;
        put_block(&s, &bits, at, at + step);
        at += step;
        left -= step;
    }
    kpti_deflate_align(&bits);
    kpti_assert((size_t)(bits.at - (uint8_t *)out) <= KPTI_DEFLATE_ROOM(size));
    return (size_t)(bits.at - (uint8_t *)out);
}
