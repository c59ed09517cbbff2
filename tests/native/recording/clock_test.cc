// clock_test.cc: our converter: exact, monotone, near the real clock, and still so after days.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

extern "C" {
#include "core/base/platform.h"
#include "core/recording/clock.h"
}

namespace
{

__extension__ typedef __int128 wide;

constexpr int64_t one_second = 1000000000;
constexpr int64_t day = 86400 * one_second;
constexpr int64_t unix_start = 1700000000 * one_second;

kpti_clock_point point(uint64_t ticks, int64_t monotonic_ns, uint64_t hz = 0)
{
    kpti_clock_point p{};
    p.ticks = ticks;
    p.monotonic_ns = monotonic_ns;
    p.unix_ns = unix_start + monotonic_ns;
    p.hz = hz;
    return p;
}

int64_t convert(kpti_clock *clock, uint64_t ticks)
{
    int64_t ns;
    kpti_clock_convert(clock, &ticks, &ns, 1);
    return ns;
}

// The straight line through two points, in arithmetic that can't overflow.
int64_t exact(const kpti_clock_point &a, const kpti_clock_point &b, uint64_t ticks)
{
    const wide distance = static_cast<wide>(ticks) - static_cast<wide>(a.ticks);
    const wide ns = distance * (b.monotonic_ns - a.monotonic_ns) / (b.ticks - a.ticks);
    return static_cast<int64_t>(a.unix_ns + ns);
}

TEST(Clock, goes_through_both_points)
{
    const kpti_clock_point a = point(1000, 0);
    const kpti_clock_point b = point(1000 + 121875000, one_second);
    kpti_clock clock;
    kpti_clock_between(&a, &b, &clock);
    EXPECT_EQ(a.unix_ns, convert(&clock, a.ticks));
    EXPECT_NEAR(0, static_cast<double>(b.unix_ns - convert(&clock, b.ticks)), 1);
    EXPECT_NEAR(0, static_cast<double>(a.unix_ns - 8 - convert(&clock, 999)), 1) << "before it";
}

struct Rate {
    double hz;
    int64_t length_ns;
};

class ClockRates : public testing::TestWithParam<Rate>
{
};

TEST_P(ClockRates, are_exact_to_the_nanosecond_and_monotone)
{
    const int64_t length = GetParam().length_ns;
    const kpti_clock_point a = point(UINT64_C(123456789012345), 0);
    const kpti_clock_point b = point(
        a.ticks + static_cast<uint64_t>(GetParam().hz * static_cast<double>(length) / 1e9), length);
    kpti_clock clock;
    kpti_clock_between(&a, &b, &clock);
    std::mt19937_64 random(1);
    std::vector<uint64_t> ticks;
    for (int i = 0; i < 20000; i++)
        ticks.push_back(a.ticks + random() % (b.ticks - a.ticks));
    for (uint64_t t = b.ticks - 10000; t <= b.ticks; t++)
        ticks.push_back(t);
    for (uint64_t t = (UINT64_C(1) << 24) - 3000; t < (UINT64_C(1) << 24) + 3000; t++)
        ticks.push_back(a.ticks + t); // the end of a stretch
    std::sort(ticks.begin(), ticks.end());
    std::vector<int64_t> ns(ticks.size());
    kpti_clock_convert(&clock, ticks.data(), ns.data(), ticks.size());
    for (size_t i = 0; i < ticks.size(); i++) {
        ASSERT_LE(exact(a, b, ticks[i]) - 2, ns[i]) << "tick " << ticks[i] - a.ticks;
        ASSERT_GE(exact(a, b, ticks[i]) + 1, ns[i]) << "tick " << ticks[i] - a.ticks;
        ASSERT_LE(ns[i ? i - 1 : 0], ns[i]);
        if (i % 100) continue;
        ASSERT_EQ(ns[i], convert(&clock, ticks[i])) << "alone as among others";
    }
}

INSTANTIATE_TEST_SUITE_P(Counters, ClockRates,
                         testing::Values(Rate{24e6, one_second}, Rate{121.875e6, one_second},
                                         Rate{1e9, day}, Rate{2.1e9, one_second},
                                         Rate{2.6e9, 30 * day}, Rate{3.7e9, 365 * day},
                                         Rate{121.875e6, 1000 * day}, Rate{1e6, day},
                                         Rate{32768, day}, Rate{5e9, one_second / 50}));

TEST(Clock, of_a_short_run_goes_by_the_counters_rate)
{
    const kpti_clock_point a = point(5000, 0, 1000000000);
    const kpti_clock_point b = point(5100, 250, 1000000000); // a noisy stop after 100 ns
    kpti_clock clock;
    kpti_clock_between(&a, &b, &clock);
    EXPECT_EQ(a.unix_ns + 100, convert(&clock, 5100));
}

TEST(Clock, of_a_short_run_measures_our_counter_where_nobody_tells)
{
    kpti_clock_point a;
    kpti_clock_point b;
    kpti_clock_calibrate(&a);
    a.hz = 0;
    b = a;
    b.ticks++;
    kpti_clock clock;
    kpti_clock_between(&a, &b, &clock);
    kpti_clock_calibrate(&b);
    const int64_t off = convert(&clock, b.ticks) - b.unix_ns;
    EXPECT_LT(std::abs(off), 1000000) << "after some ten milliseconds";
}

TEST(Clock, of_a_counter_that_nothing_is_known_of)
{
    const kpti_clock_point still = point(1000, 0);
    kpti_clock clock;
    kpti_clock_between(&still, &still, &clock);
    EXPECT_EQ(still.unix_ns + 5, convert(&clock, 1005)) << "a tick is a nanosecond";
    const kpti_clock_point later = point(1100, 300);
    kpti_clock_between(&still, &later, &clock);
    EXPECT_NEAR(15, static_cast<double>(convert(&clock, 1005) - still.unix_ns), 1);
}

TEST(Clock, does_not_care_who_sets_the_time)
{
    const kpti_clock_point a = point(0, 0);
    kpti_clock_point b = point(1000000000, one_second);
    b.unix_ns -= 3600 * one_second; // an hour back, meanwhile
    kpti_clock clock;
    kpti_clock_between(&a, &b, &clock);
    EXPECT_EQ(a.unix_ns + one_second, convert(&clock, b.ticks));
}

TEST(Clock, saturates_at_the_ends_of_time)
{
    for (uint64_t hz : {UINT64_C(1000), UINT64_C(121875000), UINT64_C(3000000000)}) {
        const kpti_clock_point a = point(UINT64_C(1) << 40, 0, hz);
        const kpti_clock_point b = point((UINT64_C(1) << 40) + 1, 1, hz);
        kpti_clock clock;
        kpti_clock_between(&a, &b, &clock);
        const uint64_t ticks[] = {
            0, 1, a.ticks - 1, a.ticks, a.ticks + 1, UINT64_C(1) << 62, UINT64_MAX - 1, UINT64_MAX};
        int64_t ns[8];
        kpti_clock_convert(&clock, ticks, ns, 8);
        EXPECT_TRUE(std::is_sorted(ns, ns + 8)) << hz;
        EXPECT_EQ(hz < 2000000000 ? INT64_MAX : ns[7], ns[7]) << hz;
        EXPECT_EQ(a.unix_ns, ns[3]);
    }
}

TEST(Clock, may_begin_before_the_epoch)
{
    kpti_clock_point a = point(5000, 0, 1000000000);
    a.unix_ns = -100;
    kpti_clock clock;
    kpti_clock_between(&a, &a, &clock);
    EXPECT_EQ(-100, convert(&clock, 5000));
    EXPECT_EQ(50, convert(&clock, 5150));
    EXPECT_EQ(-200, convert(&clock, 4900));
}

TEST(ClockThrough, goes_by_the_points_around)
{
    // Two runs; between them the machine slept, and the monotonic clock did not count.
    const kpti_clock_point points[] = {point(0, 0), point(1000000000, one_second),
                                       point(9000000000, 2 * one_second),
                                       point(9000000000 + 500000000, 3 * one_second)};
    kpti_clock_piece more[4];
    kpti_clock clock;
    kpti_clock_through(points, 4, more, &clock);
    EXPECT_EQ(unix_start + one_second / 2, convert(&clock, 500000000));
    EXPECT_EQ(unix_start + one_second, convert(&clock, 1000000000));
    EXPECT_EQ(unix_start + 3 * one_second / 2, convert(&clock, 5000000000));
    EXPECT_EQ(unix_start + 2 * one_second, convert(&clock, 9000000000));
    EXPECT_EQ(unix_start + 2 * one_second + 200, convert(&clock, 9000000100));
    EXPECT_EQ(unix_start + 4 * one_second, convert(&clock, 10000000000)) << "goes on as at the end";
}

TEST(ClockThrough, is_monotone_whatever_the_points_are)
{
    for (uint32_t seed = 0; seed < 300; seed++) {
        std::mt19937_64 random(seed);
        std::vector<kpti_clock_point> points;
        uint64_t ticks = random() % 1000;
        int64_t ns = 0;
        for (uint64_t i = 0; i < 1 + seed % 12; i++) {
            points.push_back(point(ticks, ns, seed % 3 ? 100000000 : 0));
            const uint64_t step = random() % (UINT64_C(1) << (random() % 40));
            ticks = random() % 10 ? ticks + step : ticks - step / 2; // worse than real counters
            ns += static_cast<int64_t>(random() % 3 ? 10 * step : random() % 1000000000);
        }
        std::vector<kpti_clock_piece> more(points.size());
        kpti_clock clock;
        kpti_clock_through(points.data(), static_cast<uint32_t>(points.size()), more.data(),
                           &clock);
        std::vector<uint64_t> asked;
        for (const kpti_clock_point &p : points)
            for (uint64_t d = 0; d < 50; d++)
                asked.push_back(p.ticks + d * d - 25);
        for (int i = 0; i < 2000; i++)
            asked.push_back(random() % (ticks + ticks / 2 + 1));
        std::sort(asked.begin(), asked.end());
        std::vector<int64_t> got(asked.size());
        kpti_clock_convert(&clock, asked.data(), got.data(), asked.size());
        ASSERT_TRUE(std::is_sorted(got.begin(), got.end())) << "seed " << seed;
        for (size_t i = 0; i < asked.size(); i += 17)
            ASSERT_EQ(got[i], convert(&clock, asked[i])) << "seed " << seed;
    }
}

TEST(ClockThrough, one_point)
{
    const kpti_clock_point p = point(1000, 0, 100000000);
    kpti_clock_piece more[1];
    kpti_clock clock;
    kpti_clock_through(&p, 1, more, &clock);
    EXPECT_EQ(p.unix_ns + 10, convert(&clock, 1001));
}

// The system's time at a tick, as exactly as possible.
struct Sample {
    uint64_t ticks;
    int64_t unix_ns;
    uint64_t took;
};

Sample sample()
{
    struct timespec t;
    const uint64_t before = kpti_ticks_ordered();
    (void)clock_gettime(CLOCK_REALTIME, &t);
    const uint64_t took = kpti_ticks_ordered() - before;
    return {before + took / 2, t.tv_sec * one_second + t.tv_nsec, took};
}

TEST(Clock, agrees_with_the_real_one)
{
    std::vector<Sample> samples;
    kpti_clock_point start;
    kpti_clock_point stop;
    kpti_clock_calibrate(&start);
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1200);
    while (std::chrono::steady_clock::now() < until) {
        samples.push_back(sample());
        std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    kpti_clock_calibrate(&stop);
    kpti_clock clock;
    kpti_clock_between(&start, &stop, &clock);
    // Only those that were not interrupted: the machine may be busy.
    std::sort(samples.begin(), samples.end(),
              [](const Sample &a, const Sample &b) { return a.took < b.took; });
    samples.resize(samples.size() / 2);
    ASSERT_FALSE(samples.empty());
    std::vector<int64_t> off;
    for (const Sample &s : samples)
        off.push_back(std::abs(convert(&clock, s.ticks) - s.unix_ns));
    std::sort(off.begin(), off.end());
    RecordProperty("median_ns", static_cast<int>(off[off.size() / 2]));
    RecordProperty("worst_ns", static_cast<int>(off.back()));
    EXPECT_LT(off[off.size() / 2], 2000);
    EXPECT_LT(off.back(), 20000);
}

TEST(Clock, a_point_is_taken_quickly_and_closely)
{
    kpti_clock_point a;
    kpti_clock_point b;
    kpti_clock_calibrate(&a);
    kpti_clock_calibrate(&b);
    EXPECT_GE(b.ticks, a.ticks);
    EXPECT_GE(b.monotonic_ns, a.monotonic_ns);
    EXPECT_TRUE(a.ours);
    EXPECT_EQ(kpti_ticks_hz(), a.hz);
    const Sample now = sample();
    EXPECT_LT(std::abs(now.unix_ns - b.unix_ns), one_second) << "that is the time";
}

TEST(Clock, tells_how_long_a_time_is_in_ticks)
{
    const auto per_second = static_cast<double>(kpti_clock_ticks_in(one_second));
    EXPECT_GT(per_second, 1e5);
    if (kpti_ticks_hz()) {
        EXPECT_EQ(kpti_ticks_hz(), kpti_clock_ticks_in(one_second));
    }
    EXPECT_NEAR(86400.0, static_cast<double>(kpti_clock_ticks_in(day)) / per_second, 0.01);
    EXPECT_EQ(0u, kpti_clock_ticks_in(0));
    EXPECT_LE(kpti_clock_ticks_in(UINT64_MAX - 1), kpti_clock_ticks_in(UINT64_MAX));
}

TEST(Clock, of_another_counter)
{
    uint64_t ticks = 1000;
    kpti_clock_point p;
    kpti_clock_calibrate_with(
        &p, [](void *ctx) { return (*static_cast<uint64_t *>(ctx))++; }, &ticks, 17);
    EXPECT_GE(p.ticks, 1000u);
    EXPECT_LE(p.ticks, ticks);
    EXPECT_EQ(17u, p.hz);
    EXPECT_FALSE(p.ours);
}

// Many runs in one process, as of a tracer that is restarted a thousand times.
TEST(ClockThrough, a_thousand_runs)
{
    std::vector<kpti_clock_point> points;
    for (int i = 0; i < 2000; i++) {
        kpti_clock_point p;
        kpti_clock_calibrate(&p);
        points.push_back(p);
    }
    std::vector<kpti_clock_piece> more(points.size());
    kpti_clock clock;
    kpti_clock_through(points.data(), static_cast<uint32_t>(points.size()), more.data(), &clock);
    for (size_t i = 0; i < points.size(); i++) {
        const int64_t want = points[0].unix_ns + points[i].monotonic_ns - points[0].monotonic_ns;
        ASSERT_LT(std::abs(convert(&clock, points[i].ticks) - want), 20000) << i;
    }
}

// Another thread's point may be later; an unsigned difference took that for a very long time (issue 23).
TEST(Clock, IsNotDueBeforeTheLastPoint)
{
    EXPECT_TRUE(kpti_clock_is_due(1000, 0, 100));
    EXPECT_TRUE(kpti_clock_is_due(1101, 1000, 100));
    EXPECT_FALSE(kpti_clock_is_due(1100, 1000, 100));
    EXPECT_FALSE(kpti_clock_is_due(1000, 1000, 0));
    EXPECT_FALSE(kpti_clock_is_due(999, 1000, 100));
}

} // namespace
