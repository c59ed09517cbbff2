/* stack_test.cc: stacks that begin alike share their nodes; what nobody holds is given back, a bounded
 * number at a time, and what somebody holds is not. */
#include <gtest/gtest.h>

#include <vector>

#include "tests/native/callstacks/tables.h"

namespace
{

std::vector<uint32_t> places_of(uint32_t stack)
{
    std::vector<uint32_t> locations;
    for (; stack; stack = stack_below(stack))
        locations.push_back(stack_place(stack));
    return locations;
}

uint32_t make(const std::vector<uint32_t> &locations)
{
    return stack_make(locations.data(), static_cast<uint32_t>(locations.size()));
}

/* The tree is the process's: each test leaves it empty. */
class Stack : public testing::Test
{
  protected:
    void TearDown() override
    {
        stacks_free_dead(UINT64_MAX);
        EXPECT_EQ(stacks_nodes(), 0u);
        EXPECT_EQ(stacks_dead(), 0u);
    }
};

TEST_F(Stack, OfNothingIsZero)
{
    EXPECT_EQ(make({}), 0u);
    stack_retain(0);
    stack_release(0);
}

TEST_F(Stack, ReadsAsItWasMade)
{
    const std::vector<uint32_t> locations = {3, 1, 4, 1, 5, 9, 2, 6};
    const uint32_t stack = make(locations);
    EXPECT_EQ(places_of(stack), locations);
    EXPECT_EQ(stacks_nodes(), 8u);
    stack_release(stack);
}

TEST_F(Stack, SharesItsOuterFrames)
{
    const uint32_t a = make({1, 7, 8, 9});
    const uint32_t b = make({2, 7, 8, 9});
    EXPECT_NE(a, b);
    EXPECT_EQ(stack_below(a), stack_below(b));
    EXPECT_EQ(make({1, 7, 8, 9}), a);
    EXPECT_EQ(stacks_nodes(), 5u);
    stack_release(a);
    stack_release(a);
    stack_release(b);
}

TEST_F(Stack, LivesAsLongAsOneHolder)
{
    const uint32_t stack = make({1, 2, 3});
    stack_retain(stack);
    stack_release(stack);
    stacks_free_dead(UINT64_MAX);
    EXPECT_EQ(places_of(stack), (std::vector<uint32_t>{1, 2, 3}));
    stack_release(stack);
    EXPECT_EQ(stacks_dead(), 1u);
    stacks_free_dead(UINT64_MAX);
    EXPECT_EQ(stacks_nodes(), 0u);
}

TEST_F(Stack, KeepsWhatIsBelowAnotherOne)
{
    const uint32_t lower = make({2, 3});
    const uint32_t upper = make({1, 2, 3});
    stack_release(lower);
    stacks_free_dead(UINT64_MAX);
    EXPECT_EQ(places_of(upper), (std::vector<uint32_t>{1, 2, 3}));
    stack_release(upper);
}

TEST_F(Stack, ThatIsFoundAgainBeforeItWasGivenBackLives)
{
    const uint32_t stack = make({1, 2, 3});
    stack_release(stack);
    EXPECT_EQ(make({1, 2, 3}), stack);
    stacks_free_dead(UINT64_MAX);
    EXPECT_EQ(places_of(stack), (std::vector<uint32_t>{1, 2, 3}));
    stack_release(stack); /* and dies a second time */
}

TEST_F(Stack, IsGivenBackStepByStep)
{
    std::vector<uint32_t> locations(1000);
    for (uint32_t i = 0; i < 1000; i++)
        locations[i] = i + 1;
    stack_release(make(locations));
    stacks_free_dead(10);
    EXPECT_EQ(stacks_nodes(), 990u);
    stacks_free_dead(0);
    EXPECT_EQ(stacks_nodes(), 990u);
    stacks_free_dead(900);
    EXPECT_EQ(stacks_nodes(), 90u);
}

TEST_F(Stack, TakesMemoryThatWasGivenBack)
{
    const uint32_t first = make({1, 2, 3});
    stack_release(first);
    stacks_free_dead(UINT64_MAX);
    for (uint32_t i = 1; i <= 1000; i++) {
        const uint32_t stack = make({i, i + 1, i + 2});
        EXPECT_LE(stack, first);
        stack_release(stack);
        stacks_free_dead(UINT64_MAX);
    }
}

} // namespace
