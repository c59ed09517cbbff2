/* slowdown_test.cc: the sample of a function's calls is bounded, and of the whole run. */
#include "writers/findings/slowdown.h"

#include <gtest/gtest.h>

#include "tests/fixtures/failing_heap.h"

namespace
{

class Slowdown : public testing::Test
{
  protected:
    ~Slowdown() override
    {
        kpti_slowdown_free(&sample, &heap);
    }
    kpti_heap heap = {};
    kpti_slowdown sample = {};
};

TEST_F(Slowdown, TheSampleIsBoundedAndOfTheWholeRun)
{
    for (int64_t i = 0; i < 200000; i++) {
        ASSERT_EQ(kpti_slowdown_add(&sample, &heap, i, 1), KPT_OK);
        ASSERT_LE(sample.capacity, 128u);
        ASSERT_TRUE(i < 200 || sample.count >= 64);
    }
    EXPECT_LT(sample.calls[0].start_ns, 200000 / 60);
    EXPECT_GT(sample.calls[sample.count - 1].start_ns, 200000 - 200000 / 60);
    for (uint32_t i = 1; i < sample.count; i++)
        EXPECT_EQ(sample.calls[i].start_ns - sample.calls[i - 1].start_ns, 1 << sample.every_log2);
}

/* Threads are delivered one after the other, so calls do not come in the order of time. */
TEST_F(Slowdown, CallsOfThreadsAreSortedByTime)
{
    kpti_slower found;
    for (int64_t thread = 0; thread < 4; thread++)
        for (int64_t i = 0; i < 500; i++)
            ASSERT_EQ(kpti_slowdown_add(&sample, &heap, i, i < 250 ? 10 : 100), KPT_OK);
    ASSERT_TRUE(kpti_slowdown_judge(&sample, &found));
    EXPECT_EQ(found.first_ns, 10u);
    EXPECT_EQ(found.last_ns, 100u);
    EXPECT_GE(found.last_at_ns, 250);
}

TEST_F(Slowdown, NoMemoryAtAnyPointLosesNothing)
{
    const uint64_t failures = fail_each_allocation([](const kpti_heap &failing) {
        kpti_slowdown tried = {};
        kpt_status status = KPT_OK;
        for (int64_t i = 0; i < 1000 && status == KPT_OK; i++)
            status = kpti_slowdown_add(&tried, &failing, i, 1);
        kpti_slowdown_free(&tried, &failing);
        return status;
    });
    EXPECT_EQ(failures, 3U);
}

} // namespace
