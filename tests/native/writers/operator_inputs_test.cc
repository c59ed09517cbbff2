/* operator_inputs_test.cc: the inputs of operators as JSON. */
#include <gtest/gtest.h>

#include <random>

#include "abi/kpt_inputs.h"
#include "tests/fixtures/readers/strict_json.h"
#include "writers/operators/operator_inputs.h"

namespace
{

/* Makes a buffer of exactly the size that is promised, so that AddressSanitizer finds a byte behind it. */
std::string json_of(const std::string &inputs)
{
    std::vector<char> buffer(kpti_inputs_json_bytes(inputs.size()));
    const char *end = kpti_inputs_json(buffer.data(), {inputs.data(), inputs.size()});
    EXPECT_LE(end, buffer.data() + buffer.size());
    return {buffer.data(), static_cast<size_t>(end - buffer.data())};
}

std::string bytes(std::initializer_list<int> list)
{
    std::string out;
    for (int byte : list)
        out += static_cast<char>(byte);
    return out;
}

std::string number_of(double value)
{
    return bytes({KPT_INPUT_DOUBLE}) + std::string(reinterpret_cast<const char *>(&value), 8);
}

/* Returns the value that torch's profiler would write for a scalar. */
std::string value_of(const std::string &scalar)
{
    const std::string all = json_of(scalar);
    const size_t begin = all.find("[\"") + 2;
    return all.substr(begin, all.find("\"]") - begin);
}

TEST(OperatorInputs, HaveValuesTypesStridesAndSizes)
{
    /* A tensor of 3 x 300, one without strides, an undefined one, something else, an int. */
    const std::string inputs =
        bytes({KPT_INPUT_TENSOR, 6, 2, 3, 0xac, 2, 0xac, 2, 1, KPT_INPUT_SIZES, 15, 1, 7,
               KPT_INPUT_UNDEFINED, KPT_INPUT_OTHER, KPT_INPUT_INT, 5});
    EXPECT_EQ(json_of(inputs),
              ",\"Concrete Inputs\":[\"\", \"\", \"\", \"\", \"-3\"]"
              ",\"Input type\":[\"float\", \"c10::BFloat16\", \"\", \"\", \"Scalar\"]"
              ",\"Input Strides\":[[300, 1], [], [], [], []]"
              ",\"Input Dims\":[[3, 300], [7], [], [], []]");
}

TEST(OperatorInputs, ListsAreLists)
{
    const std::string inputs = bytes({KPT_INPUT_TENSORS,
                                      3,
                                      KPT_INPUT_TENSOR,
                                      4,
                                      1,
                                      2,
                                      1,
                                      KPT_INPUT_UNDEFINED,
                                      KPT_INPUT_SIZES,
                                      7,
                                      0,
                                      KPT_INPUT_END,
                                      KPT_INPUT_SCALARS,
                                      KPT_INPUT_TRUE,
                                      KPT_INPUT_FALSE,
                                      KPT_INPUT_INT,
                                      2,
                                      KPT_INPUT_END,
                                      KPT_INPUT_SCALARS,
                                      KPT_INPUT_END});
    EXPECT_EQ(json_of(inputs), ",\"Concrete Inputs\":[\"\", \"[True, False, 1]\", \"[]\"]"
                               ",\"Input type\":[\"TensorList\", \"ScalarList\", \"ScalarList\"]"
                               ",\"Input Strides\":[[[1], [], []], [], []]"
                               ",\"Input Dims\":[[[2], [], []], [], []]");
}

TEST(OperatorInputs, NumbersAreWrittenAsTorchWritesThem)
{
    EXPECT_EQ(value_of(number_of(1)), "1.");
    EXPECT_EQ(value_of(number_of(-2)), "-2.");
    EXPECT_EQ(value_of(number_of(0.1)), "0.10000000000000001");
    EXPECT_EQ(value_of(number_of(1e20)), "1e+20");
    EXPECT_EQ(value_of(number_of(1e-7)), "9.9999999999999995e-08");
    EXPECT_EQ(value_of(number_of(INFINITY)), "inf");
    EXPECT_EQ(value_of(number_of(-INFINITY)), "-inf");
    EXPECT_EQ(value_of(number_of(NAN)), "nan");
    EXPECT_EQ(
        value_of(bytes({KPT_INPUT_COMPLEX}) + number_of(1).substr(1) + number_of(-2.5).substr(1)),
        "1.-2.5j");
    EXPECT_EQ(
        value_of(bytes({KPT_INPUT_INT, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})),
        "-9223372036854775808");
}

TEST(OperatorInputs, AnUnknownTypeHasItsNumber)
{
    EXPECT_NE(json_of(bytes({KPT_INPUT_SIZES, 200, 0})).find("\"type 200\""), std::string::npos);
}

std::string text_of(const std::string &text)
{
    return bytes({KPT_INPUT_TEXT, static_cast<int>(text.size())}) + text;
}

TEST(OperatorInputs, KeywordsAreFieldsOfTheirOwn)
{
    const std::string inputs =
        bytes({KPT_INPUT_KEYWORDS}) + text_of("whole") + bytes({KPT_INPUT_INT, 5}) +
        text_of("yes") + bytes({KPT_INPUT_TRUE}) + text_of("half") + number_of(0.5) +
        text_of("\"\\") + text_of("a\n\xff") + text_of("infinite") + number_of(INFINITY) +
        text_of("texts") + bytes({KPT_INPUT_LIST}) + text_of("a") + text_of("\"") +
        bytes({KPT_INPUT_END}) + text_of("none") + bytes({KPT_INPUT_LIST, KPT_INPUT_END}) +
        bytes({KPT_INPUT_END});
    const std::string expected = ",\"whole\":-3,\"yes\":true,\"half\":0.5,\"\\\"\\\\\":"
                                 "\"a\\n\xef\xbf\xbd\",\"infinite\":\"inf\","
                                 "\"texts\":[\"a\", \"\\\"\"],\"none\":[]";
    EXPECT_EQ(json_of(inputs), expected);
    EXPECT_EQ(json_of(bytes({KPT_INPUT_TRUE}) + inputs),
              ",\"Concrete Inputs\":[\"True\"],\"Input type\":[\"Scalar\"]"
              ",\"Input Strides\":[[]],\"Input Dims\":[[]]" +
                  expected);
}

/* Values that torch's profiler does not write either, and names that would stand twice in one event. */
TEST(OperatorInputs, OtherKeywordsAreLeftOut)
{
    const std::string list = bytes({KPT_INPUT_LIST, KPT_INPUT_INT, 2, KPT_INPUT_LIST}) +
                             text_of("x") + bytes({KPT_INPUT_END, KPT_INPUT_END});
    const std::string last = text_of("last") + bytes({KPT_INPUT_FALSE});
    for (const std::string &one :
         {text_of("list") + list, text_of("empty") + text_of(""),
          text_of("other") + bytes({KPT_INPUT_OTHER}),
          text_of("complex") + bytes({KPT_INPUT_COMPLEX}) + std::string(16, '\0'),
          text_of("Input Dims") + bytes({KPT_INPUT_TRUE}), text_of("Ev Idx") + text_of("text"),
          text_of("stream") + text_of("7")}) {
        EXPECT_EQ(json_of(bytes({KPT_INPUT_KEYWORDS}) + one + last + bytes({KPT_INPUT_END})),
                  ",\"last\":false");
    }
    EXPECT_EQ(json_of(bytes({KPT_INPUT_KEYWORDS}) + text_of("stream") + bytes({KPT_INPUT_INT, 2}) +
                      text_of("quoted") + text_of("a\"b")),
              ",\"stream\":1,\"quoted\":\"None\"");
    EXPECT_EQ(json_of(bytes({KPT_INPUT_KEYWORDS})), "");
    EXPECT_EQ(json_of(bytes({KPT_INPUT_KEYWORDS, KPT_INPUT_TEXT, 200, 'a'})), "");
}

TEST(OperatorInputs, OfAnyBytesAreJson)
{
    std::mt19937 random(5);
    for (int round = 0; round < 20000; round++) {
        std::string inputs;
        for (size_t left = random() % 40; left > 0; left--)
            inputs += static_cast<char>(random() % (random() % 4 ? KPT_INPUT_LIST + 1 : 256));
        const std::string json = "{\"x\":0" + json_of(inputs) + "}";
        ASSERT_NO_THROW(read_json(json)) << json;
    }
    EXPECT_LE(json_of(std::string(KPT_INPUTS_MOST_BYTES, KPT_INPUT_FALSE)).size(),
              kpti_inputs_json_bytes(KPT_INPUTS_MOST_BYTES));
    for (int round = 0; round < 20000; round++) {
        std::string keywords = bytes({KPT_INPUT_KEYWORDS});
        while (random() % 8)
            keywords += random() % 2 ? text_of(std::string(random() % 3, '\xff'))
                                     : bytes({static_cast<int>(random() % (KPT_INPUT_LIST + 2))});
        ASSERT_NO_THROW(read_json("{\"x\":0" + json_of(keywords) + "}"));
    }
}

} // namespace
