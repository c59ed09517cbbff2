#include <gtest/gtest.h>

#include <thread>

#include "core/base/platform.h"

namespace
{

TEST(Platform, ticks_move)
{
    const uint64_t first = kpti_ticks_ordered();
    uint64_t now = first;
    for (int i = 0; i < 100000000 && now == first; i++)
        now = kpti_ticks();
    EXPECT_GT(now, first);
}

TEST(Platform, ordered_ticks_never_go_backwards)
{
    uint64_t last = kpti_ticks_ordered();
    for (int i = 0; i < 100000; i++) {
        const uint64_t now = kpti_ticks_ordered();
        ASSERT_GE(now, last);
        last = now;
    }
}

TEST(Platform, thread_ids_are_the_systems)
{
    EXPECT_EQ(static_cast<uint64_t>(getpid()), kpti_os_tid()) << "on the first thread";
    uint64_t other = 0;
    std::thread([&] { other = kpti_os_tid(); }).join();
    EXPECT_NE(0u, other);
    EXPECT_NE(kpti_os_tid(), other);
}

} // namespace
