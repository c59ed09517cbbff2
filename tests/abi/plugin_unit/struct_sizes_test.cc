/* struct_sizes_test.cc: every struct of the contract that crosses into the plugin, at every size,
 * each lying against a page that can't be touched. It opens libkpytrace.so as a host does. */
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/abi/plugin_unit/struct_world.h"

namespace
{

constexpr unsigned char GARBAGE = 0xA5;
constexpr uint32_t ONLY_THE_SIZE = 4;
constexpr uint32_t NEWER = 64;

/* The size that the struct claims, relative to today's (or to V1), and whether it is valid. */
struct length {
    const char *name;
    uint32_t (*claimed)(const row &r);
    uint32_t (*held)(const row &r);
    bool good;
};

uint32_t v1(const row &r)
{
    return r.v1_size;
}
uint32_t below_v1(const row &r)
{
    return r.v1_size - 1;
}
uint32_t current(const row &r)
{
    return r.size;
}
uint32_t newer(const row &r)
{
    return r.size + NEWER;
}
uint32_t zero(const row &)
{
    return 0;
}
uint32_t size_field(const row &r)
{
    return r.by_stride ? r.size : ONLY_THE_SIZE; /* an array's stride is not in the struct */
}
uint32_t huge(const row &)
{
    return 0xFFFFFFFF;
}

const length LENGTHS[] = {
    {"v1", v1, v1, true},
    {"current", current, current, true},
    {"newer", newer, newer, true},
    {"huge", huge, current, true},
    {"zero", zero, size_field, false},
    {"below_v1", below_v1, below_v1, false},
    {"size_only", [](const row &) { return ONLY_THE_SIZE; }, size_field, false},
};

void expect_word(const row &r, const struct_world &world)
{
    if (!r.text) return;
    EXPECT_NE(r.text(world).find(r.word), std::string::npos) << "the text: " << r.text(world);
}

class StructSize : public testing::TestWithParam<std::tuple<row, length>>
{
  protected:
    /* Returns today's struct with valid contents, up to the held size, followed by garbage. */
    unsigned char *lay_out()
    {
        std::vector<unsigned char> whole(r.size, 0);
        auto *memory = static_cast<unsigned char *>(mock_guarded(held));
        r.prepare(world, whole.data());
        if (!r.by_stride) memcpy(whole.data(), &claimed, sizeof claimed);
        memset(memory, GARBAGE, held);
        memcpy(memory, whole.data(), held < r.size ? held : r.size);
        return memory;
    }

    const row &r = std::get<0>(GetParam());
    const length &l = std::get<1>(GetParam());
    const uint32_t claimed = l.claimed(r);
    const size_t held = l.held(r);
    struct_world world;
};

TEST_P(StructSize, IsTakenAsItIsOrRefusedWithAText)
{
    unsigned char *memory = lay_out();
    std::vector<unsigned char> before(memory, memory + held);
    kpt_status status = r.use(world, memory, claimed);
    EXPECT_EQ(status, l.good ? KPT_OK : r.refusal) << kpt_status_name(status);
    if (!l.good) {
        EXPECT_EQ(memcmp(memory, before.data(), held), 0) << "what was refused was written to";
        expect_word(r, world);
        return;
    }
    if (!r.is_filled) {
        EXPECT_EQ(memcmp(memory, before.data(), held), 0) << "what is ours was written to";
        return;
    }
    uint32_t filled;
    memcpy(&filled, memory, sizeof filled);
    EXPECT_EQ(filled, claimed < r.size ? claimed : r.size) << "it tells how much is filled";
    for (size_t i = r.size; i < held; i++)
        ASSERT_EQ(memory[i], GARBAGE) << "written past what is known, byte " << i;
    EXPECT_TRUE(r.is_filled(memory)) << "it does not hold what was asked for";
}

INSTANTIATE_TEST_SUITE_P(
    All, StructSize, testing::Combine(testing::ValuesIn(struct_rows()), testing::ValuesIn(LENGTHS)),
    [](const auto &each) {
        return std::string(std::get<0>(each.param).name) + "_" + std::get<1>(each.param).name;
    });

class StructNull : public testing::TestWithParam<row>
{
};

TEST_P(StructNull, IsInvalid)
{
    struct_world world;
    const row &r = GetParam();
    EXPECT_EQ(r.use(world, nullptr, r.size), r.null_answer);
    if (r.null_answer != KPT_OK) expect_word(r, world);
}

INSTANTIATE_TEST_SUITE_P(All, StructNull, testing::ValuesIn(struct_rows()),
                         [](const auto &each) { return std::string(each.param.name); });

/* Two elements of a newer host's array: the second is found by the stride, not by our size. */
TEST(StructArray, IsWalkedByItsStride)
{
    struct_world world;
    const size_t stride = sizeof(kpt_filter) + NEWER;
    auto *memory = static_cast<unsigned char *>(mock_guarded(2 * stride));
    memset(memory, GARBAGE, 2 * stride);
    kpt_filter filter = {KPT_FILTER_INCLUDE, KPT_MATCH_MODULE, kpt_str_of("a")};
    memcpy(memory, &filter, sizeof filter);
    filter.action = 77; /* invalid, and only detected at the second element's real position */
    memcpy(memory + stride, &filter, sizeof filter);
    kpt_tracer_args args;
    KPT_INIT(&args);
    args.filters = reinterpret_cast<const kpt_filter *>(memory);
    args.filter_count = 2;
    args.filter_stride = static_cast<uint32_t>(stride);
    EXPECT_EQ(world.try_make(&args), KPT_E_UNSUPPORTED);
    EXPECT_NE(world.plugin_text().find("filter 1"), std::string::npos) << world.plugin_text();
    filter.action = KPT_FILTER_EXCLUDE;
    memcpy(memory + stride, &filter, sizeof filter);
    EXPECT_EQ(world.try_make(&args), KPT_OK);
}

} // namespace
