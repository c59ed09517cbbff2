/* slow_steps_test.cc: which steps are slow. */
#include "hosts/standalone/background/slow_steps.h"

#include <gtest/gtest.h>

namespace
{

constexpr int64_t MS = 1000000;
constexpr uint32_t TRIPLE = 300;

struct StepClock : testing::Test {
    /* Ends a step of an optimizer, NS after the last step of any. */
    bool end(int64_t ns, uint64_t optimizer = 1)
    {
        now += ns;
        return kpti_slow_steps_optimizer(&clock, optimizer, now, TRIPLE, &slow) != 0;
    }
    bool span(int64_t ns)
    {
        return kpti_slow_steps_span(&clock, static_cast<uint64_t>(ns), TRIPLE, &slow) != 0;
    }

    kpti_slow_steps clock = {};
    kpti_slow_step slow = {};
    int64_t now = 1000 * MS;
};

TEST_F(StepClock, AStepOverThriceTheMedianIsSlow)
{
    for (int i = 0; i < 10; i++)
        EXPECT_FALSE(end((10 + i % 3) * MS)) << i;
    EXPECT_FALSE(end(30 * MS));
    EXPECT_TRUE(end(34 * MS));
    EXPECT_EQ(slow.number, 12u);
    EXPECT_EQ(slow.ns, static_cast<uint64_t>(34 * MS));
    EXPECT_EQ(slow.median_ns, static_cast<uint64_t>(11 * MS));
    EXPECT_FALSE(end(11 * MS));
}

TEST_F(StepClock, TheFirstStepsAreNotSlow)
{
    EXPECT_FALSE(end(MS));        /* its begin is not known */
    EXPECT_FALSE(end(5000 * MS)); /* compiles */
    for (int i = 0; i < KPTI_STEPS_NEEDED - 1; i++)
        EXPECT_FALSE(end(10 * MS));
    EXPECT_TRUE(end(31 * MS));
}

TEST_F(StepClock, ShortStepsAreNotSlow)
{
    for (int i = 0; i < 10; i++)
        EXPECT_FALSE(end(1000));
    EXPECT_FALSE(end(MS - 1));
    EXPECT_TRUE(end(MS));
}

TEST_F(StepClock, TheMedianIsOfTheRecentSteps)
{
    for (int i = 0; i < 100; i++)
        (void)end(10 * MS);
    for (int i = 0; i < KPTI_STEPS_RECENT; i++)
        (void)end(100 * MS);
    EXPECT_FALSE(end(290 * MS));
    EXPECT_EQ(slow.median_ns, static_cast<uint64_t>(100 * MS));
}

TEST_F(StepClock, SpansReplaceTheOptimizersSteps)
{
    for (int i = 0; i < 10; i++)
        EXPECT_FALSE(end(10 * MS));
    for (int i = 0; i < 10; i++) {
        EXPECT_FALSE(span(2 * MS));
        EXPECT_FALSE(end(1)); /* does not count any more */
    }
    EXPECT_TRUE(span(7 * MS));
    EXPECT_EQ(slow.number, 11u);
    EXPECT_EQ(slow.median_ns, static_cast<uint64_t>(2 * MS));
}

TEST_F(StepClock, OfSeveralOptimizersOneIsTheClock)
{
    for (int i = 0; i < 50; i++) {
        EXPECT_FALSE(end(99 * MS, 1)) << i;
        EXPECT_FALSE(end(MS, 2)) << i;
        EXPECT_FALSE(end(MS, 3)) << i;
    }
    EXPECT_TRUE(end(303 * MS, 1));
    EXPECT_EQ(slow.number, 51u);
}

TEST_F(StepClock, AnOptimizerThatIsGoneIsReplaced)
{
    for (int i = 0; i < 10; i++)
        EXPECT_FALSE(end(10 * MS, 1));
    for (int i = 0; i < KPTI_STEPS_OF_OTHERS + 10; i++)
        EXPECT_FALSE(end(100 * MS, 2));
    EXPECT_TRUE(end(301 * MS, 2));
}

} // namespace
