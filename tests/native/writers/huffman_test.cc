/* huffman_test.cc: codes are complete, within their limit, and as short as Huffman's if the limit allows
 * it. */
#include <gtest/gtest.h>

#include <queue>
#include <random>
#include <vector>

#include "writers/deflate/huffman.h"

namespace
{

using frequencies = std::vector<uint32_t>;

std::vector<kpti_code> codes_of(const frequencies &f, uint32_t limit)
{
    std::vector<kpti_code> codes(f.size());
    kpti_huffman_make(f.data(), static_cast<uint32_t>(f.size()), limit, codes.data());
    return codes;
}

/* Checks that the code is complete and prefix-free (by deflate's numbering), and that each symbol that
 * occurs has a code. */
void expect_valid(const frequencies &f, const std::vector<kpti_code> &codes, uint32_t limit)
{
    uint64_t taken = 0;
    uint32_t next = 0;
    for (size_t i = 0; i < f.size(); i++) {
        EXPECT_TRUE(!f[i] || codes[i].size) << i;
        EXPECT_LE(codes[i].size, limit);
        if (codes[i].size) taken += uint64_t{1} << (limit - codes[i].size);
    }
    EXPECT_EQ(taken, uint64_t{1} << limit);
    for (uint32_t size = 1; size <= limit; size++, next <<= 1)
        for (const kpti_code &code : codes) {
            if (code.size != size) continue;
            uint32_t bits = 0;
            for (uint32_t i = 0; i < size; i++)
                bits |= (code.bits >> i & 1u) << (size - 1 - i);
            EXPECT_EQ(bits, next++);
        }
}

uint64_t bits_of(const frequencies &f, const std::vector<kpti_code> &codes)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < f.size(); i++)
        bits += uint64_t{f[i]} * codes[i].size;
    return bits;
}

/* Returns the bits of Huffman's own algorithm, without a limit. */
uint64_t fewest_bits(const frequencies &f)
{
    std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> weights;
    uint64_t bits = 0;
    for (uint32_t frequency : f)
        if (frequency) weights.push(frequency);
    while (weights.size() > 1) {
        uint64_t sum = weights.top();
        weights.pop();
        sum += weights.top();
        weights.pop();
        bits += sum;
        weights.push(sum);
    }
    return bits;
}

frequencies fibonacci(size_t count)
{
    frequencies f = {1, 1};
    while (f.size() < count)
        f.push_back(f[f.size() - 1] + f[f.size() - 2]);
    return f;
}

TEST(Huffman, CodesOfFewSymbolsAreComplete)
{
    for (const frequencies &f :
         {frequencies{0, 0}, {0, 0, 0}, {5, 0, 0}, {0, 0, 7}, {1, 1}, {9, 1, 0}})
        expect_valid(f, codes_of(f, 15), 15);
}

TEST(Huffman, TheLimitHolds)
{
    for (size_t count : {3, 8, 9, 16, 17, 24, 31}) {
        const frequencies f = fibonacci(count);
        for (uint32_t limit : {7U, 15U}) {
            if (count > 1u << limit) continue;
            const auto codes = codes_of(f, limit);
            expect_valid(f, codes, limit);
            const uint64_t max = fewest_bits(f) * (count - 1 <= limit ? 4 : 5) / 4;
            EXPECT_LE(bits_of(f, codes), max) << count << " in " << limit;
        }
    }
    /* As many symbols as the limit allows, and nearly as many. */
    for (size_t count : {126, 127, 128}) {
        frequencies f(count, 1);
        for (size_t i = 0; i < 22; i++)
            f[i] = 1u << i;
        expect_valid(f, codes_of(f, 7), 7);
    }
}

TEST(Huffman, CodesAreTheShortest)
{
    std::mt19937 random(1);
    for (int round = 0; round < 2000; round++) {
        frequencies f(2 + random() % (KPTI_HUFFMAN_MAX_SYMBOLS - 1));
        const int shift = static_cast<int>(random() % 32);
        for (uint32_t &frequency : f)
            frequency =
                static_cast<uint32_t>(random() >> shift) % (KPTI_HUFFMAN_MAX_FREQUENCY / 1024);
        const auto codes = codes_of(f, 15);
        const uint64_t fewest = fewest_bits(f);
        expect_valid(f, codes, 15);
        if (fewest) {
            EXPECT_LE(bits_of(f, codes), fewest + fewest / 50);
        }
    }
    frequencies equal(256, 3);
    EXPECT_EQ(bits_of(equal, codes_of(equal, 15)), 256u * 3 * 8);
}

} // namespace
