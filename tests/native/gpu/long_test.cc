/* long_test.cc: recordings that last: what was handed out is not kept, and what is lost is counted. */
#include <atomic>
#include <thread>

#include "tests/native/gpu/budget_race.h"
#include "tests/native/gpu/playing.h"

class Long : public Playing
{
  protected:
    enum { EACH = 2000, LINES = 100, CHUNK = 64 << 10 };
    Long();
    /* A kernel that does not come, or not yet; its correlation. */
    uint32_t launch_without_kernel();
    /* Collects, and keeps nothing: each kernel has the line that it was launched from. */
    void check_kernels(size_t count);
    /* ROUNDS times: some launches from different lines, and a collect. */
    void stream(int rounds);
    /* The same, whose kernels never come. */
    void stream_without_kernels(int rounds);

    play_call held = {};
};

Long::Long()
{
    args.budget_bytes = 8 << 20; /* a buffer, and the rows of 24,576 launches */
    held.driver = "cuLaunchKernel";
    held.kernel = "held";
    held.stream = LINES + 1;
}

uint32_t Long::launch_without_kernel()
{
    held.no_kernel = 1;
    const uint32_t correlation = cupti->call(&held);
    held.no_kernel = 0;
    return correlation;
}

void Long::check_kernels(size_t count)
{
    ASSERT_EQ(collect(), KPT_OK) << error();
    const std::vector<Event> kernels = of_kind(KPT_GPU_KERNEL);
    ASSERT_EQ(kernels.size(), count);
    for (const Event &kernel : kernels)
        ASSERT_EQ(kernel.python.python, kernel.stream);
    ASSERT_TRUE(of_kind(KPT_GPU_DRIVER).size() <=
                1); /* the others are recorded as calls of the runtime */
    events.clear();
}

void Long::stream(int rounds)
{
    for (int round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < EACH; i++) {
            set_python_line(i % LINES + 1);
            launch("k", i % LINES + 1);
        }
        ASSERT_NO_FATAL_FAILURE(check_kernels(EACH));
    }
}

void Long::stream_without_kernels(int rounds)
{
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < EACH; i++)
            launch_without_kernel();
        ASSERT_EQ(collect(), KPT_OK);
        ASSERT_TRUE(of_kind(KPT_GPU_KERNEL).empty());
        events.clear();
    }
}

TEST_F(Long, MemoryStaysTheSame)
{
    begin();
    ASSERT_NO_FATAL_FAILURE(stream(15));
    const uint64_t held_before = stats().bytes_held;
    for (int round = 0; round < 45; round++) {
        ASSERT_NO_FATAL_FAILURE(stream(1));
        ASSERT_LE(stats().bytes_held, held_before + 2 * CHUNK);
        ASSERT_EQ(tracebacks_out(), LINES); /* the host may remember them by their numbers */
    }
    finish();
    EXPECT_EQ(stats().dropped, 0u);
    EXPECT_EQ(stats().lost_kernels, 0u);
}

/* With room for more than is needed, no more is taken: what is old goes first. */
TEST_F(Long, WhatIsOldIsForgottenWithoutWant)
{
    args.budget_bytes = 256 << 20;
    begin();
    ASSERT_NO_FATAL_FAILURE(stream(60));
    const uint64_t held_before = stats().bytes_held;
    ASSERT_NO_FATAL_FAILURE(stream(100));
    EXPECT_LE(stats().bytes_held, held_before + 2 * CHUNK);
    finish();
    EXPECT_EQ(stats().dropped, 0u);
    EXPECT_EQ(stats().lost_kernels, 0u);
}

/* What is read is freed while threads append to it. */
TEST_F(Long, ThreadsCallWhileItIsCollected)
{
    enum { THREADS = 4, LAUNCHES = 10000 };
    std::vector<std::thread> threads;
    std::atomic<int> running{THREADS};
    args.budget_bytes = 128 << 20;
    begin();
    for (uint32_t t = 1; t <= THREADS; t++)
        threads.emplace_back([this, t, &running] {
            set_python_line(t);
            for (int i = 0; i < LAUNCHES; i++)
                launch("k", t);
            running--;
        });
    while (running)
        EXPECT_EQ(collect(), KPT_OK);
    for (std::thread &thread : threads)
        thread.join();
    ASSERT_NO_FATAL_FAILURE(check_kernels((size_t)THREADS * LAUNCHES));
    finish();
    EXPECT_EQ(stats().dropped, 0u);
    EXPECT_EQ(stats().lost_kernels, 0u);
}

TEST_F(Long, AKernelThatComesLongAfterItsCall)
{
    begin();
    set_python_line(held.stream);
    const uint32_t correlation = launch_without_kernel();
    ASSERT_EQ(collect(), KPT_OK);
    events.clear();
    ASSERT_NO_FATAL_FAILURE(stream(30));
    cupti->work(&held, correlation);
    ASSERT_NO_FATAL_FAILURE(check_kernels(1));
    finish();
    EXPECT_EQ(stats().dropped, 0u);
    EXPECT_EQ(stats().lost_kernels, 0u);
}

TEST_F(Long, KernelsThatNeverComeAreCounted)
{
    enum { ROUNDS = 30 };
    begin();
    set_python_line(5);
    ASSERT_NO_FATAL_FAILURE(stream_without_kernels(ROUNDS));
    EXPECT_LE(tracebacks_out(), EACH);
    finish();
    EXPECT_EQ(stats().lost_kernels, (uint64_t)ROUNDS * EACH);
    EXPECT_EQ(stats().dropped, 0u);
}

TEST_F(Long, AKernelThatComesWhenItsLaunchIsForgotten)
{
    enum { ROUNDS = 30 };
    begin();
    set_python_line(5);
    const uint32_t correlation = launch_without_kernel();
    ASSERT_NO_FATAL_FAILURE(stream_without_kernels(ROUNDS));
    cupti->work(&held, correlation);
    finish();
    ASSERT_EQ(of_kind(KPT_GPU_KERNEL).size(), 1u);
    EXPECT_EQ(of_kind(KPT_GPU_KERNEL)[0].python.python, 0u);
    EXPECT_EQ(stats().dropped, 1u); /* its stack */
    EXPECT_EQ(stats().lost_kernels, (uint64_t)ROUNDS * EACH);
}

TEST_F(Long, EventsWithoutTheirStacksAreCounted)
{
    enum { ROUNDS = 12, LAUNCHES = 30000 };
    uint64_t without = 0;
    begin();
    set_python_line(5);
    ASSERT_NO_FATAL_FAILURE(stream_without_kernels(ROUNDS));
    for (int i = 0; i < LAUNCHES; i++)
        launch_without_kernel();
    ASSERT_EQ(collect(), KPT_OK);
    for (const Event &call : of_kind(KPT_GPU_DRIVER))
        without += call.python.python == 0;
    EXPECT_EQ(events.size(), (size_t)LAUNCHES);
    EXPECT_GT(without, 0u);
    finish();
    EXPECT_EQ(stats().dropped, without);
    EXPECT_EQ(stats().lost_kernels, (uint64_t)ROUNDS * EACH + LAUNCHES);
}

TEST_F(Long, LaunchesWithoutRoomAreCounted)
{
    enum { LAUNCHES = 40000 };
    args.budget_bytes = 1 << 20;
    begin();
    set_python_line(5);
    for (int i = 0; i < LAUNCHES; i++)
        launch_without_kernel();
    finish();
    EXPECT_TRUE(events.empty());
    EXPECT_EQ(stats().dropped, (uint64_t)LAUNCHES); /* the calls' records */
    EXPECT_EQ(stats().lost_kernels, (uint64_t)LAUNCHES);
}

TEST(Budget, WhatIsRefusedIsInNobodysWay)
{
    EXPECT_EQ(budget_race(1000000), 0u);
}
