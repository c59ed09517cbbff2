/* The clock that operators are stamped with. */
#include <gtest/gtest.h>

#include <thread>
#include <vector>

extern "C" {
#include "execution_trace/record/thread_clock.h"
}

namespace
{

/* Returns the distance to the system's clock, whichever was read first. The thread may be preempted between
 * the readings, so the least of many counts. */
int64_t distance(kpti_et_now &now)
{
    int64_t min = INT64_MAX;
    for (int i = 0; i < 1000; i++) {
        const int64_t before = kpti_et_clock_ns(CLOCK_MONOTONIC);
        const int64_t now_ns = kpti_et_now_ns(&now);
        const int64_t after = kpti_et_clock_ns(CLOCK_MONOTONIC);
        const int64_t off = now_ns < before ? before - now_ns : now_ns > after ? now_ns - after : 0;
        min = std::min(min, off);
    }
    return min;
}

TEST(Now, IsTheMonotonicClock)
{
    kpti_et_now now = {};
    const int64_t end = kpti_et_clock_ns(CLOCK_MONOTONIC) + 100000000;
    while (kpti_et_clock_ns(CLOCK_MONOTONIC) < end)
        ASSERT_LT(distance(now), 2000);
}

TEST(Now, NeverGoesBackwards)
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([] {
            kpti_et_now now = {};
            int64_t last = 0;
            for (int k = 0; k < 300000; k++) {
                const int64_t now_ns = kpti_et_now_ns(&now);
                ASSERT_GE(now_ns, last);
                last = now_ns;
                if (k % 10000 == 0) now.length /= 2; /* read the system's clock at another time */
            }
        });
    for (auto &thread : threads)
        thread.join();
}

/* If the counter jumps or runs at another rate than reported, the system's clock counts. */
TEST(Now, ACounterThatIsWrongIsNotBelieved)
{
    kpti_et_now now = {};
    (void)kpti_et_now_look(&now);
    for (const uint64_t jump : {UINT64_C(1) << 40, UINT64_MAX >> 8, -(UINT64_C(1) << 40)}) {
        const int64_t before = kpti_et_clock_ns(CLOCK_MONOTONIC);
        now.ticks -= jump;
        const int64_t now_ns = kpti_et_now_ns(&now);
        EXPECT_GE(now_ns, before - 1000000);
        EXPECT_LE(now_ns, kpti_et_clock_ns(CLOCK_MONOTONIC) + 2000000);
    }
}

} // namespace
