#include "writers/deflate/huffman.h"

#include <string.h>

#include "core/base/assert.h"

/* Frequency and symbol are in one word, so that sorting moves both. */
enum { SYMBOL_BITS = 9, SYMBOL_MASK = (1 << SYMBOL_BITS) - 1, MAX_LIMIT = 15 };

static void sort(uint32_t *words, uint32_t count)
{
    static const uint32_t gaps[] = {132, 57, 23, 10, 4, 1};
    for (uint32_t g = 0; g < sizeof gaps / sizeof *gaps; g++) {
        const uint32_t gap = gaps[g];
        for (uint32_t i = gap; i < count; i++) {
            const uint32_t word = words[i];
            uint32_t at = i;
            for (; at >= gap && words[at - gap] > word; at -= gap)
                words[at] = words[at - gap];
            words[at] = word;
        }
    }
}

/* Collects the symbols that get a code, rarest first. Returns how many. */
static uint32_t gather(const uint32_t *frequencies, uint32_t count, uint32_t *leaves)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++)
        if (frequencies[i]) leaves[found++] = frequencies[i] << SYMBOL_BITS | i;
    for (uint32_t i = 0; found < 2; i++)
        if (!frequencies[i]) leaves[found++] = i;
    sort(leaves, found);
    return found;
}

/* Builds Huffman's tree from two queues: the sorted leaves, and the nodes in the order of their creation, which
 * is the order of their weights. COUNTS receives the number of leaves at each depth; leaves deeper than the
 * limit are counted at the limit. */
static void count_depths(const uint32_t *leaves, uint32_t count, uint32_t limit, uint32_t *counts)
{
    uint32_t weights[KPTI_HUFFMAN_MAX_SYMBOLS] = {0};
    uint32_t leaf_parents[KPTI_HUFFMAN_MAX_SYMBOLS] = {0};
    uint32_t node_parents[KPTI_HUFFMAN_MAX_SYMBOLS] = {0};
    uint32_t depths[KPTI_HUFFMAN_MAX_SYMBOLS] = {0};
    uint32_t leaf = 0;
    uint32_t node = 0;
    for (uint32_t made = 0; made < count - 1; made++) {
        weights[made] = 0;
        for (int child = 0; child < 2; child++) {
            if (leaf < count && (node == made || leaves[leaf] >> SYMBOL_BITS <= weights[node])) {
                weights[made] += leaves[leaf] >> SYMBOL_BITS;
                leaf_parents[leaf++] = made;
            } else {
                weights[made] += weights[node];
                node_parents[node++] = made;
            }
        }
    }
    depths[count - 2] = 0; /* the root is created last */
    for (uint32_t i = count - 2; i-- > 0;)
        depths[i] = depths[node_parents[i]] + 1;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t depth = depths[leaf_parents[i]] + 1;
        counts[depth < limit ? depth : limit]++;
    }
}

/* Leaves raised to the limit use more of the code space than there is. Each step frees space for one of them: a
 * leaf above the limit becomes a node with itself and a leaf from the limit as children. */
static void fit(uint32_t *counts, uint32_t limit)
{
    uint32_t taken = 0; /* used code space, in units of a code of LIMIT bits */
    for (uint32_t size = 1; size <= limit; size++)
        taken += counts[size] << (limit - size);
    for (; taken > 1u << limit; taken--) {
        uint32_t size = limit - 1;
        while (!counts[size])
            size--;
        counts[size]--;
        counts[size + 1] += 2;
        counts[limit]--;
    }
}

static uint16_t reversed(uint32_t bits, uint32_t size)
{
    uint32_t out = 0;
    for (; size; size--, bits >>= 1)
        out = out << 1 | (bits & 1);
    return (uint16_t)out;
}

void kpti_huffman_make(const uint32_t *frequencies, uint32_t count, uint32_t most_bits,
                       kpti_code *codes)
{
    uint32_t leaves[KPTI_HUFFMAN_MAX_SYMBOLS];
    uint32_t counts[MAX_LIMIT + 1] = {0};
    uint32_t next[MAX_LIMIT + 1];
    const uint32_t used = gather(frequencies, count, leaves);
    uint32_t leaf = 0;
    uint32_t code = 0;
    kpti_assert(count >= 2 && count <= KPTI_HUFFMAN_MAX_SYMBOLS && most_bits <= MAX_LIMIT);
    memset(codes, 0, count * sizeof *codes);
    count_depths(leaves, used, most_bits, counts);
    fit(counts, most_bits);
    for (uint32_t size = most_bits; size; size--) /* the rarest symbols get the longest codes */
        for (uint32_t i = 0; i < counts[size]; i++)
            codes[leaves[leaf++] & SYMBOL_MASK].size = (uint16_t)size;
    for (uint32_t size = 1; size <= most_bits; size++) {
        next[size] = code;
        code = (code + counts[size]) << 1;
    }
    kpti_assert(code == 2u << most_bits); /* the code is complete: it uses all of the code space */
    kpti_assert(leaf == used);
    for (uint32_t i = 0; i < count; i++)
        if (codes[i].size) codes[i].bits = reversed(next[codes[i].size]++, codes[i].size);
}
