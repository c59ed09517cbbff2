/* python_version_test.cc: the results of Py_GetVersion in real CPythons, and results that never occur. */
#include <gtest/gtest.h>

#include "tests/abi/plugin_unit/private.h"

namespace
{

struct version {
    const char *text;
    int good;
    int minor;
    int free_threaded;
    const char *first_line;
};

const version VERSIONS[] = {
    {"3.10.13 (main, Nov  6 2023, 10:00:00) [GCC 12.2.0]", 1, 10, 0, nullptr},
    {"3.12.1 (main, Dec  8 2023, 05:40:51) \n[GCC 12.2.0]", 1, 12, 0,
     "3.12.1 (main, Dec  8 2023, 05:40:51) "},
    {"3.13.5 experimental free-threading build (main, Jun 12 2025) [GCC 14.2.0]", 1, 13, 1,
     nullptr},
    {"3.14.0 free-threading build (main, Oct  7 2025) [Clang 20.1.4 ]", 1, 14, 1, nullptr},
    {"3.15.0a1+ (heads/main:0123456, Nov  1 2025) [GCC 14.2.0]", 1, 15, 0, nullptr},
    {"3.14t", 1, 14, 1, nullptr},
    {"3.14", 1, 14, 0, nullptr},
    {"3.9", 1, 9, 0, nullptr},
    {"3.0", 1, 0, 0, nullptr},
    {"3.99.0", 1, 99, 0, nullptr},
    {"2.7.18 (default, Jul  8 2024) [GCC 12.2.0]", 0, 0, 0, nullptr},
    {"4.0.0", 0, 0, 0, nullptr},
    {"30.1", 0, 0, 0, nullptr},
    {"-3.12", 0, 0, 0, nullptr},
    {"3.100.0", 0, 0, 0, nullptr},
    {"3.99999999999999999999999", 0, 0, 0, nullptr},
    {"99999999999999999999.12", 0, 0, 0, nullptr},
    {"3", 0, 0, 0, nullptr},
    {"3.", 0, 0, 0, nullptr},
    {"3.-12", 0, 0, 0, nullptr},
    {"3. 12", 0, 0, 0, nullptr},
    {"3,12", 0, 0, 0, nullptr},
    {"Python 3.12.1", 0, 0, 0, nullptr},
    {"garbage", 0, 0, 0, nullptr},
    {"\n3", 0, 0, 0, nullptr},
    {"", 0, 0, 0, nullptr},
};

std::ostream &operator<<(std::ostream &out, const version &v)
{
    return out << '"' << v.text << '"';
}

class PythonVersion : public testing::TestWithParam<version>
{
};

TEST_P(PythonVersion, IsParsedOrRefused)
{
    const version &v = GetParam();
    kpti_python python;
    memset(&python, 0, sizeof python);
    EXPECT_EQ(kpti_parse_python_version(v.text, &python), v.good);
    EXPECT_EQ(python.major, v.good ? 3 : 0);
    EXPECT_EQ(python.minor, v.minor);
    EXPECT_EQ(python.free_threaded, v.free_threaded);
    EXPECT_STREQ(python.version, v.good ? (v.first_line ? v.first_line : v.text) : "");
    EXPECT_EQ(python.state, KPTI_PYTHON_ABSENT) << "the parser has no say in that";
}

INSTANTIATE_TEST_SUITE_P(Texts, PythonVersion, testing::ValuesIn(VERSIONS));

TEST(PythonVersionText, IsCutToItsRoom)
{
    kpti_python python;
    std::string text = "3.12.1 " + std::string(100000, 'x');
    memset(&python, 0, sizeof python);
    EXPECT_EQ(kpti_parse_python_version(text.c_str(), &python), 1);
    EXPECT_EQ(std::string(python.version), text.substr(0, sizeof python.version - 1));
    EXPECT_EQ(python.path[0], 0) << "nothing ran over into the next field";
}

TEST(FindPython, FindsNoneInAProgramWithoutIt)
{
    kpti_python python;
    memset(&python, 0xFF, sizeof python);
    kpti_find_python(&python);
    EXPECT_EQ(python.state, KPTI_PYTHON_ABSENT);
    EXPECT_EQ(python.minor, 0);
    EXPECT_STREQ(python.path, "");
}

} // namespace
