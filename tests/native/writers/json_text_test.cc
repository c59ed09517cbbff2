/* json_text_test.cc: strings and numbers as JSON: the output can be read for every input. */
#include "writers/encode/json_text.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "tests/fixtures/readers/strict_json.h"

namespace
{

std::string escape(const std::string &text)
{
    std::vector<char> capacity(text.size() * KPTI_JSON_MAX_GROWTH + 1, '#');
    char *end = kpti_json_escape(capacity.data(), text.data(), text.size());
    EXPECT_LE(end, capacity.data() + capacity.size() - 1);
    return std::string(capacity.data(), end);
}

/* Returns the text after writing and reading. */
std::string round_trip(const std::string &text)
{
    return read_json("\"" + escape(text) + "\"").text;
}

const std::string replaced = "\xEF\xBF\xBD";

/* The tests' own reader must be strict. */
TEST(JsonText, TheReaderIsStrict)
{
    for (const char *text :
         {"", "{", "[1,]", "{\"a\":1,}", "{\"a\":1,\"a\":2}", "\"\n\"", "\"\xff\"", "\"\\x\"",
          "\"\xed\xa0\x80\"", "01", "1.", ".5", "+1", "nul", "[1] 2", "'a'", "{a:1}", "\"a"})
        EXPECT_THROW(read_json(text), std::runtime_error) << text;
    EXPECT_EQ(read_json(" { \"a\" : [ 1.50, null, true ] } ")["a"].items[0].text, "1.50");
}

TEST(JsonText, EveryAsciiCharacterComesBack)
{
    for (int c = 0; c < 0x80; c++) {
        std::string one(1, static_cast<char>(c));
        EXPECT_EQ(round_trip(one), one) << c;
        EXPECT_EQ(round_trip("a" + one + "z"), "a" + one + "z") << c;
    }
    EXPECT_EQ(escape("\"\\\n\t\x01\x1f"), "\\\"\\\\\\n\\t\\u0001\\u001f");
    EXPECT_EQ(escape(""), "");
    EXPECT_EQ(escape("/~\x7f"), "/~\x7f") << "these need no escape";
}

TEST(JsonText, EveryCharacterComesBackFromEveryPlace)
{
    const std::string plain = "what is plain is copied by the word";
    for (int c = 0; c < 0x80; c++) {
        for (size_t at = 0; at < plain.size(); at++) {
            std::string text = plain;
            text[at] = static_cast<char>(c);
            EXPECT_EQ(round_trip(text), text);
        }
    }
}

TEST(JsonText, OtherCharactersStayAsTheyAre)
{
    for (const char *text : {"größe", "имя", "名前", "𝒻", "\u0080", "\u07ff", "\u0800", "\ud7ff",
                             "\ue000", "\uffff", "\U00010000", "\U0010ffff", "\u2028"})
        EXPECT_EQ(escape(text), text);
}

/* As Python: bytes.decode("utf-8", "replace"). */
TEST(JsonText, WhatIsNoUtf8IsReplaced)
{
    struct {
        std::string in, out;
    } rows[] = {
        {"\x80", replaced},
        {"\xff", replaced},
        {"a\xc3", "a" + replaced}, /* cut off */
        {"\xc3(", replaced + "("}, /* the next bytes are kept */
        {"\xe2\x82", replaced},    /* a maximal part is one */
        {"\xe2\x82x", replaced + "x"},
        {"\xf0\x9f\x98", replaced},
        {"\xc0\xaf", replaced + replaced}, /* overlong */
        {"\xe0\x80\xaf", replaced + replaced + replaced},
        {"\xed\xa0\x80", replaced + replaced + replaced},                /* a surrogate */
        {"\xf4\x90\x80\x80", replaced + replaced + replaced + replaced}, /* beyond U+10FFFF */
        {"\xf8\x88\x80\x80\x80", replaced + replaced + replaced + replaced + replaced},
        {"ok\xfe\"", "ok" + replaced + "\\\""},
    };
    for (const auto &row : rows)
        EXPECT_EQ(escape(row.in), row.out);
}

TEST(JsonText, AnyBytesCanBeReadBack)
{
    std::mt19937 random(4);
    for (int round = 0; round < 5000; round++) {
        std::string text(random() % 24, ' ');
        for (char &c : text)
            c = static_cast<char>(random());
        std::string back = round_trip(text);
        EXPECT_TRUE(is_utf8(back));
        if (is_utf8(text)) {
            EXPECT_EQ(back, text);
        }
    }
}

std::string put(char *(*format)(char *, uint64_t), uint64_t value)
{
    char capacity[KPTI_JSON_MAX_NUMBER];
    return std::string(capacity, format(capacity, value));
}

char *put_i64(char *out, uint64_t value)
{
    return kpti_put_i64(out, static_cast<int64_t>(value));
}

std::string expected_us(uint64_t ns)
{
    char text[64];
    snprintf(text, sizeof text, "%llu.%03llu", static_cast<unsigned long long>(ns / 1000),
             static_cast<unsigned long long>(ns % 1000));
    return text;
}

TEST(JsonText, NumbersAreExactInEverySize)
{
    std::mt19937_64 random(7);
    std::vector<uint64_t> values = {0, UINT64_MAX, INT64_MAX, 1ull << 63};
    for (uint64_t power = 1; power <= UINT64_MAX / 10; power *= 10)
        for (uint64_t each : {power - 1, power, power + 1, power * 10 - 1})
            values.push_back(each);
    for (int i = 0; i < 10000; i++)
        values.push_back(random() >> (random() % 64));
    for (uint64_t value : values) {
        EXPECT_EQ(put(kpti_put_u64, value), std::to_string(value));
        EXPECT_EQ(put(put_i64, value), std::to_string(static_cast<int64_t>(value)));
        EXPECT_EQ(put(kpti_put_us, value), expected_us(value));
    }
}

TEST(JsonText, NearNumbersAreThoseOfAnyRow)
{
    std::mt19937_64 random(8);
    kpti_near last = {};
    kpti_near last_ns = {};
    kpti_near last_us = {};
    char capacity[2 * KPTI_JSON_MAX_NUMBER];
    for (int i = 0; i < 20000; i++) {
        uint64_t begin = random() >> (random() % 64);
        for (uint64_t value = begin; value - begin < 5; value++) {
            EXPECT_EQ(std::string(capacity, kpti_put_near(capacity, value, &last)),
                      std::to_string(value));
            EXPECT_EQ(std::string(capacity, kpti_put_ns_near(capacity, value, &last_ns)),
                      std::to_string(value));
            EXPECT_EQ(std::string(capacity, kpti_put_us_near(capacity, value, &last_us)),
                      expected_us(value));
        }
    }
}

TEST(JsonText, DistancesMayLieBeforeTheBaseAndNeverOverflow)
{
    char capacity[KPTI_JSON_MAX_NUMBER];
    auto between = [&](int64_t from, int64_t to) {
        return std::string(capacity, kpti_put_us_between(capacity, from, to));
    };
    EXPECT_EQ(between(0, 0), "0.000");
    EXPECT_EQ(between(1000, 2500), "1.500");
    EXPECT_EQ(between(2500, 1000), "-1.500");
    EXPECT_EQ(between(1, 0), "-0.001");
    EXPECT_EQ(between(INT64_MIN, INT64_MAX), "18446744073709551.615");
    EXPECT_EQ(between(INT64_MAX, INT64_MIN), "-18446744073709551.615");
}

TEST(JsonText, FractionsReadBackAsTheSameNumber)
{
    char capacity[KPTI_JSON_MAX_NUMBER];
    for (double value : {0.0, -0.0, 0.1, -2.5, 1.0 / 3, 1e21, 1.7976931348623157e308, 5e-324}) {
        std::string text(capacity, kpti_put_double(capacity, value));
        EXPECT_EQ(std::strtod(read_json(text).text.c_str(), nullptr), value) << text;
    }
    double infinity = std::numeric_limits<double>::infinity();
    for (double value : {infinity, -infinity, std::numeric_limits<double>::quiet_NaN()})
        EXPECT_EQ(std::string(capacity, kpti_put_double(capacity, value)), "null");
}

} // namespace
