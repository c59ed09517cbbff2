/* size_test.cc: the size rule's pure functions, with the other side's struct of every length, each
 * lying against a page that can't be touched. */
#include <gtest/gtest.h>

#include <vector>

#include "tests/abi/plugin_unit/private.h"
#include "tests/fixtures/mock_host/mock_host.h"

namespace
{

/* A struct of today; V1 ended before newest. */
struct known {
    uint32_t struct_size;
    uint32_t number;
    uint64_t wide;
    uint64_t newest;
};
constexpr uint32_t SIZE = sizeof(known);
constexpr uint32_t V1_SIZE = KPT_FIELD_END(known, wide);
constexpr unsigned char GARBAGE = 0xA5;

/* Returns a peer's struct that claims CLAIMED bytes and has HELD of them, at least the size itself. */
unsigned char *peer(uint32_t claimed, size_t held)
{
    auto *memory = static_cast<unsigned char *>(mock_guarded(held));
    memset(memory, GARBAGE, held);
    memcpy(memory, &claimed, sizeof claimed);
    return memory;
}

struct length {
    const char *name;
    uint32_t claimed;
    size_t held;
    kpt_status status;
    uint32_t filled;
};

const length LENGTHS[] = {
    {"zero", 0, 4, KPT_E_SIZE, 0},
    {"one", 1, 4, KPT_E_SIZE, 0},
    {"only_the_size", 4, 4, KPT_E_SIZE, 0},
    {"one_below_v1", V1_SIZE - 1, V1_SIZE - 1, KPT_E_SIZE, 0},
    {"v1", V1_SIZE, V1_SIZE, KPT_OK, V1_SIZE},
    {"between_fields", V1_SIZE + 3, V1_SIZE + 3, KPT_OK, V1_SIZE + 3},
    {"current", SIZE, SIZE, KPT_OK, SIZE},
    {"one_more", SIZE + 1, SIZE + 1, KPT_OK, SIZE},
    {"newer", SIZE + 64, SIZE + 64, KPT_OK, SIZE},
    {"a_page_and_more", 70000, 70000, KPT_OK, SIZE},
    /* It claims more bytes than exist: the fields that we know exist, and no byte behind them may be read. */
    {"huge", 0xFFFFFFFF, SIZE, KPT_OK, SIZE},
    {"half_of_huge", 0x80000000, SIZE, KPT_OK, SIZE},
};

class Size : public testing::TestWithParam<length>
{
};

TEST_P(Size, CheckRefusesOnlyBelowV1)
{
    const length &l = GetParam();
    EXPECT_EQ(kpti_size_check(peer(l.claimed, l.held), V1_SIZE), l.status);
}

TEST_P(Size, ReadCopiesWhatBothHaveAndZeroesTheRest)
{
    const length &l = GetParam();
    known local;
    std::vector<unsigned char> bytes(SIZE, GARBAGE);
    memset(&local, 0xFF, sizeof local);
    EXPECT_EQ(kpti_size_read(&local, SIZE, peer(l.claimed, l.held), V1_SIZE), l.status);
    for (uint32_t i = l.filled; i < SIZE; i++)
        bytes[i] = 0;
    memcpy(bytes.data(), &l.filled, sizeof l.filled);
    EXPECT_EQ(memcmp(&local, bytes.data(), SIZE), 0);
    EXPECT_EQ(local.struct_size, l.filled);
}

TEST_P(Size, WriteFillsNoMoreThanThePeerHas)
{
    const length &l = GetParam();
    if (l.status != KPT_OK) return; /* a write follows a check */
    known local;
    memset(&local, 0x11, sizeof local);
    unsigned char *target = peer(l.claimed, l.held);
    kpti_size_write(target, &local, SIZE);
    uint32_t size;
    memcpy(&size, target, sizeof size);
    EXPECT_EQ(size, l.filled);
    for (size_t i = sizeof size; i < l.held; i++)
        ASSERT_EQ(target[i], i < l.filled ? 0x11 : GARBAGE) << "byte " << i;
    for (size_t i = 0; i < SIZE; i++)
        ASSERT_EQ(reinterpret_cast<unsigned char *>(&local)[i], 0x11) << "our own, byte " << i;
}

TEST_P(Size, IsWholeWhereAllWeKnowIsThere)
{
    const length &l = GetParam();
    const unsigned char *theirs = peer(l.claimed, l.held);
    const bool is_aligned = reinterpret_cast<uintptr_t>(theirs) % alignof(known) == 0;
    EXPECT_EQ(kpti_size_is_whole(theirs, SIZE), l.filled == SIZE && is_aligned);
}

TEST(SizeWhole, IsReadInPlaceOnlyWhereItCanBe)
{
    alignas(known) unsigned char memory[2 * SIZE] = {};
    const uint32_t claimed = SIZE;
    memcpy(memory, &claimed, sizeof claimed);
    memcpy(memory + SIZE + 4, &claimed, sizeof claimed);
    EXPECT_TRUE(kpti_size_is_whole(memory, SIZE));
    EXPECT_FALSE(kpti_size_is_whole(memory + SIZE + 4, SIZE));
    EXPECT_FALSE(kpti_size_is_whole(nullptr, SIZE));
}

INSTANTIATE_TEST_SUITE_P(All, Size, testing::ValuesIn(LENGTHS),
                         [](const auto &each) { return std::string(each.param.name); });

TEST(SizeNull, IsInvalidAndLeavesZero)
{
    known local;
    memset(&local, 0xFF, sizeof local);
    EXPECT_EQ(kpti_size_check(nullptr, V1_SIZE), KPT_E_INVALID);
    EXPECT_EQ(kpti_size_read(&local, SIZE, nullptr, V1_SIZE), KPT_E_INVALID);
    EXPECT_EQ(local.struct_size, 0U);
    EXPECT_EQ(local.newest, 0U);
}

TEST(SizeReadOnly, NothingIsWrittenToThePeer)
{
    known local;
    unsigned char *source = peer(SIZE + 8, SIZE + 8);
    std::vector<unsigned char> before(source, source + SIZE + 8);
    EXPECT_EQ(kpti_size_read(&local, SIZE, source, V1_SIZE), KPT_OK);
    EXPECT_EQ(memcmp(source, before.data(), before.size()), 0);
}

TEST(SizeArray, NeedsElementsAndAStrideThatHoldsV1)
{
    char some[1];
    struct {
        const void *array;
        uint64_t count;
        uint64_t stride;
        kpt_status status;
    } const rows[] = {
        {nullptr, 0, 0, KPT_OK},
        {nullptr, 0, V1_SIZE, KPT_OK},
        {some, 0, 0, KPT_OK},
        {some, 0, 1, KPT_OK},
        {nullptr, 1, V1_SIZE, KPT_E_INVALID},
        {nullptr, UINT64_MAX, 0, KPT_E_INVALID},
        {some, 1, 0, KPT_E_SIZE},
        {some, 1, V1_SIZE - 1, KPT_E_SIZE},
        {some, UINT64_MAX, V1_SIZE - 1, KPT_E_SIZE},
        {some, 1, V1_SIZE, KPT_OK},
        {some, 2, V1_SIZE + 1, KPT_OK},
        {some, 1, UINT32_MAX, KPT_OK},
        {some, 1, UINT64_MAX, KPT_OK},
        {some, 1, uint64_t{1} << 32, KPT_OK},
    };
    for (const auto &row : rows)
        EXPECT_EQ(kpti_size_check_array(row.array, row.count, row.stride, V1_SIZE), row.status)
            << row.count << " elements of " << row.stride;
}

} // namespace
