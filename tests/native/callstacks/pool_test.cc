/* pool_test.cc: what is added is found, by content and by number, however many there are, whatever their
 * hashes are like, and after others were removed. */
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/native/callstacks/tables.h"

namespace
{

constexpr uint32_t MANY = 100000;

class Pool : public testing::TestWithParam<uint64_t>
{
  protected:
    void SetUp() override
    {
        pool = pool_make(INT32_MAX, GetParam());
    }
    void TearDown() override
    {
        pool_free(pool);
    }
    test_pool *pool = nullptr;
    uint32_t count = GetParam() == UINT64_MAX ? MANY : 2000;
};

TEST_P(Pool, GivesEachContentItsNumber)
{
    for (uint32_t i = 0; i < count; i++) {
        ASSERT_EQ(pool_find(pool, i * 7), 0u);
        ASSERT_EQ(pool_add(pool, i * 7), i + 1);
    }
    for (uint32_t i = 0; i < count; i++) {
        ASSERT_EQ(pool_find(pool, i * 7), i + 1);
        ASSERT_EQ(pool_content(pool, i + 1), i * 7);
    }
    EXPECT_EQ(pool_used(pool), count);
}

TEST_P(Pool, AgreesWithAMapThroughAddsAndRemoves)
{
    std::map<uint64_t, uint32_t> model;
    std::mt19937_64 random(1);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t content = random() % (count / 4);
        auto known = model.find(content);
        ASSERT_EQ(pool_find(pool, content), known == model.end() ? 0 : known->second);
        if (known == model.end()) {
            model[content] = pool_add(pool, content);
        } else if (random() % 2) {
            pool_remove(pool, known->second);
            model.erase(known);
        }
    }
    EXPECT_EQ(pool_used(pool), model.size());
    for (const auto &[content, number] : model)
        ASSERT_EQ(pool_content(pool, number), content);
}

TEST_P(Pool, GivesANumberAgainBeforeANewOne)
{
    for (uint64_t i = 1; i <= 10; i++)
        (void)pool_add(pool, i);
    pool_remove(pool, 4);
    EXPECT_EQ(pool_find(pool, 4), 0u);
    EXPECT_EQ(pool_add(pool, 99), 4u);
    EXPECT_EQ(pool_add(pool, 100), 11u);
}

INSTANTIATE_TEST_SUITE_P(Hashes, Pool, testing::Values(UINT64_MAX, 0, 3));

TEST(PoolLimit, IsKept)
{
    test_pool *pool = pool_make(3, UINT64_MAX);
    for (uint64_t i = 1; i <= 3; i++)
        EXPECT_EQ(pool_add(pool, i), i);
    EXPECT_EQ(pool_add(pool, 4), 0u);
    pool_remove(pool, 2);
    EXPECT_EQ(pool_add(pool, 4), 2u);
    pool_free(pool);
}

} // namespace
