/* deflate_test.cc: all compressed data is read back, by zlib and by our own reader; and checksums. */
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#ifdef KPT_HAS_ZLIB
#include <zlib.h>
#endif

#include "tests/fixtures/readers/inflate.h"
#include "writers/deflate/crc32.h"
#include "writers/deflate/deflate.h"

namespace
{

class Deflate : public ::testing::Test
{
  protected:
    std::unique_ptr<kpti_deflate> encoder = std::make_unique<kpti_deflate>();
    std::mt19937 random{7};

    uint32_t below(uint32_t end)
    {
        return static_cast<uint32_t>(random() % end);
    }

    /* Compresses from and to memory of the exact size, so that a sanitizer detects accesses behind it. */
    std::string part(const std::string &text)
    {
        std::unique_ptr<char[]> data(new char[text.size()]);
        std::unique_ptr<char[]> out(new char[KPTI_DEFLATE_ROOM(text.size())]);
        std::copy(text.begin(), text.end(), data.get());
        const size_t size = kpti_deflate_part(encoder.get(), data.get(), text.size(), out.get());
        EXPECT_LE(size, KPTI_DEFLATE_ROOM(text.size()));
        return std::string(out.get(), size);
    }

    /* Returns the size of the part. */
    size_t expect_same(const std::string &text, const std::string &what = "")
    {
        const std::string bytes = part(text);
        EXPECT_TRUE(unpacked(bytes) == text) << what << ", " << text.size() << " bytes";
        return bytes.size();
    }

    static std::string unpacked(std::string bytes)
    {
        size_t used = 0;
        bytes += std::string("\x03\0", 2); /* an empty last block */
        std::string text = inflated(bytes, &used);
        EXPECT_EQ(used, bytes.size());
#ifdef KPT_HAS_ZLIB
        std::string again(text.size() + 1, 0);
        z_stream z = {};
        EXPECT_EQ(inflateInit2(&z, -15), Z_OK);
        z.next_in = reinterpret_cast<Bytef *>(bytes.data());
        z.avail_in = static_cast<uInt>(bytes.size());
        z.next_out = reinterpret_cast<Bytef *>(again.data());
        z.avail_out = static_cast<uInt>(again.size());
        EXPECT_EQ(inflate(&z, Z_FINISH), Z_STREAM_END) << (z.msg ? z.msg : "");
        again.resize(z.total_out);
        EXPECT_TRUE(again == text) << "zlib reads something else";
        EXPECT_EQ(inflateEnd(&z), Z_OK);
#endif
        return text;
    }

    /* Returns random bytes with COUNT different values. */
    std::string noise(size_t size, uint32_t count)
    {
        std::string text(size, 0);
        for (char &c : text)
            c = static_cast<char>(below(count));
        return text;
    }
};

TEST_F(Deflate, SmallOnes)
{
    EXPECT_EQ(expect_same(""), 5u);
    for (size_t size = 1; size < 40; size++) {
        EXPECT_LE(expect_same(noise(size, 256)), size + 10);
        expect_same(std::string(size, 'a'));
    }
}

TEST_F(Deflate, NoiseIsStored)
{
    for (size_t size : {100, 65534, 65535, 65536, 131071, 300000, 1000000})
        EXPECT_LE(expect_same(noise(size, 256)), size + 5 * (size / 65535 + size / 200000 + 2) + 5);
}

TEST_F(Deflate, EqualBytes)
{
    for (size_t size : {258, 259, 516, 517, 65536, 262143, 262144, 262145, 524289})
        EXPECT_LE(expect_same(std::string(size, 'x')), size / 100 + 40);
}

TEST_F(Deflate, EveryByte)
{
    std::string text;
    for (int round = 0; round < 40; round++)
        for (int byte = 0; byte < 256; byte++)
            text += static_cast<char>(byte * (2 * round + 1));
    expect_same(text);
}

TEST_F(Deflate, EveryLength)
{
    std::string text;
    const std::string repeated = noise(400, 200);
    for (size_t length = 1; length <= 300; length++) {
        text += repeated.substr(0, length);
        text += noise(5, 256);
    }
    expect_same(text);
    for (size_t length : {3, 6, 7, 8, 9, 10, 11, 257, 258, 259}) {
        const std::string begin = repeated.substr(0, 300) + "!";
        expect_same(begin + repeated.substr(0, length), "at the end");
        expect_same(begin + repeated.substr(0, length) + "?", "a byte in front of the end");
    }
}

TEST_F(Deflate, EveryDistance)
{
    const std::string repeated = noise(200, 64);
    size_t sizes[2] = {};
    std::vector<size_t> distances = {32767, 32768, 32769, 40000};
    for (size_t distance = 200; distance < 32768; distance = distance * 5 / 4 + 1)
        distances.push_back(distance);
    for (size_t power = 256; power < 32768; power *= 2)
        for (size_t offset : {0, 1, 2})
            distances.insert(distances.end(), {power + offset, power + power / 2 + offset});
    for (size_t distance : distances) {
        const std::string between = noise(distance - repeated.size(), 64);
        const size_t size = expect_same(repeated + between + repeated, std::to_string(distance));
        if (distance == 32768) sizes[0] = size;
        if (distance == 32769) sizes[1] = size;
    }
    EXPECT_LT(sizes[0] + 100, sizes[1]) << "the largest distance is used";
    for (size_t period = 1; period < 40; period++) {
        const std::string one = noise(period, 256);
        std::string text;
        while (text.size() < 2000)
            text += one;
        EXPECT_LE(expect_same(text), period + 80);
    }
}

/* Frequencies for which codes would be longer than 15 bits. */
TEST_F(Deflate, SkewedFrequencies)
{
    std::string text;
    size_t counts[2] = {1, 1};
    for (char symbol = 'A'; text.size() < 190000; symbol++) {
        text.append(counts[0], symbol);
        counts[0] += counts[1];
        std::swap(counts[0], counts[1]);
    }
    expect_same(text);
    std::shuffle(text.begin(), text.end(), random);
    expect_same(text);
}

TEST_F(Deflate, LinesAlikeButForNumbers)
{
    for (int round = 0; round < 40; round++) {
        const size_t size = below(700000);
        std::string text;
        const uint32_t names = 1 + below(300);
        const uint32_t wide = below(2) ? 1000000000 : 100;
        while (text.size() < size)
            text += "{\"ph\":\"X\",\"name\":\"f" + std::to_string(below(names)) +
                    "\",\"ts\":" + std::to_string(below(wide)) + "},\n";
        expect_same(text);
    }
}

/* Copies of any length from any distance, and noise. */
TEST_F(Deflate, AnyStructure)
{
    for (int round = 0; round < 300; round++) {
        std::string text = noise(1 + below(50), 256);
        const size_t size = below(round % 10 ? 3000 : 600000);
        const uint32_t symbols = 1 + below(256);
        const uint32_t max = 1u << below(18);
        while (text.size() < size) {
            size_t length = 1 + below(1u << below(11));
            if (below(2)) {
                text += noise(length % 64, symbols);
                continue;
            }
            for (size_t from =
                     text.size() - 1 - below(std::min(max, static_cast<uint32_t>(text.size())));
                 length; length--)
                text += text[from++];
        }
        expect_same(text);
    }
}

TEST_F(Deflate, PartsAreOneStream)
{
    std::string text, bytes;
    for (int i = 0; i < 200; i++) {
        const std::string more = std::string(below(3), 'a') + noise(below(5000), 4);
        text += more;
        bytes += part(more);
    }
    EXPECT_TRUE(unpacked(bytes) == text);
}

TEST_F(Deflate, WhatWasBeforeChangesNothing)
{
    const std::string text = noise(300000, 3);
    const std::string first = part(text);
    (void)part(noise(400000, 5));
    EXPECT_TRUE(part(text) == first);
}

/* --- checksums --------------------------------------------------------------------------------- */

TEST(Crc32, IsThatOfGzip)
{
    auto tables = std::make_unique<kpti_crc32_tables>();
    kpti_crc32_make(tables.get());
    EXPECT_EQ(kpti_crc32(tables.get(), 0, "", 0), 0u);
    EXPECT_EQ(kpti_crc32(tables.get(), 0, "123456789", 9), 0xCBF43926u);
    std::mt19937 random(3);
    std::string text(1000, 0);
    for (char &c : text)
        c = static_cast<char>(random());
    for (size_t size = 0; size <= text.size(); size++) {
        const uint32_t all = kpti_crc32(tables.get(), 0, text.data(), size);
#ifdef KPT_HAS_ZLIB
        EXPECT_EQ(all,
                  crc32(0, reinterpret_cast<const Bytef *>(text.data()), static_cast<uInt>(size)));
#endif
        const size_t middle = size ? random() % size : 0;
        const uint32_t a = kpti_crc32(tables.get(), 0, text.data(), middle);
        const uint32_t b = kpti_crc32(tables.get(), 0, text.data() + middle, size - middle);
        EXPECT_EQ(kpti_crc32(tables.get(), a, text.data() + middle, size - middle), all);
        EXPECT_EQ(kpti_crc32_join(a, b, size - middle), all);
    }
}

} // namespace
