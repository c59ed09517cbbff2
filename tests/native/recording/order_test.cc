// order_test.cc: random programs in all three orders, against the model.
#include <gtest/gtest.h>

#include "tests/native/recording/model.h"
#include "tests/native/recording/random_program.h"

namespace
{

void triple(void *, const uint64_t *ticks, int64_t *ns, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        ns[i] = static_cast<int64_t>(3 * ticks[i] + 7);
}

// A clock so coarse that most calls take no time, and many calls of all threads begin at the same time.
void coarse(void *, const uint64_t *ticks, int64_t *ns, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        ns[i] = static_cast<int64_t>(ticks[i] / 200);
}

constexpr kpt_convert_fn converters[] = {nullptr, triple, coarse};

void compare(uint32_t seed, ProgramOptions options, bool least_duration, bool ends)
{
    Recording recording;
    std::mt19937 random(seed);
    write_random_program(&recording, seed, options);
    recording.recording.min_duration_ns = least_duration ? 1 + random() % 200 : 0;
    Taking taking;
    taking.convert = converters[seed % 3];
    if (ends) taking.end_ns = 1 + static_cast<int64_t>(random() % 20000);
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++) {
        taking.order = order;
        taking.batch_size = random() % 3 ? static_cast<uint32_t>(random() % 50) : 0;
        const Taken taken = take_checked(recording, taking);
        ASSERT_EQ("", difference(model(recording, taking), taken))
            << "seed " << seed << ", order " << order;
    }
}

TEST(Orders, of_correct_programs)
{
    ProgramOptions options;
    options.faults = false;
    for (uint32_t seed = 0; seed < 60 && !HasFailure(); seed++)
        compare(seed, options, false, false);
}

TEST(Orders, of_programs_with_faults)
{
    for (uint32_t seed = 0; seed < 150 && !HasFailure(); seed++)
        compare(seed, {}, false, false);
}

TEST(Orders, of_damaged_recordings)
{
    ProgramOptions options;
    options.damage = true;
    for (uint32_t seed = 0; seed < 150 && !HasFailure(); seed++)
        compare(seed, options, false, false);
}

TEST(Orders, of_many_threads)
{
    ProgramOptions options;
    options.threads = 70;
    options.events = 40;
    for (uint32_t seed = 0; seed < 20 && !HasFailure(); seed++)
        compare(seed, options, false, false);
}

TEST(Orders, with_a_least_duration)
{
    for (uint32_t seed = 0; seed < 60 && !HasFailure(); seed++)
        compare(seed, {}, true, false);
}

TEST(Orders, with_an_end)
{
    for (uint32_t seed = 0; seed < 60 && !HasFailure(); seed++)
        compare(seed, {}, false, true);
}

TEST(Orders, with_both)
{
    for (uint32_t seed = 0; seed < 60 && !HasFailure(); seed++)
        compare(seed, {}, true, true);
}

TEST(Orders, of_damaged_recordings_with_both)
{
    ProgramOptions options;
    options.damage = true;
    for (uint32_t seed = 0; seed < 100 && !HasFailure(); seed++)
        compare(seed, options, seed % 2, true);
}

// Blocks of times and pages of outcomes end at different positions.
TEST(Orders, of_long_threads)
{
    ProgramOptions options;
    options.events = 60000;
    options.threads = 2;
    compare(1, options, false, false);
    compare(2, options, true, true);
}

TEST(Orders, repeat_exactly)
{
    Recording recording;
    write_random_program(&recording, 5, {});
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++) {
        Taking taking;
        taking.order = order;
        const Taken first = take(recording, taking);
        const Taken again = take(recording, taking);
        EXPECT_EQ(first.text(), again.text());
        EXPECT_EQ(first.repairs, again.repairs);
    }
}

} // namespace
