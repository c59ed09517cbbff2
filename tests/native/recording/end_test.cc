// end_test.cc: the delivery's end, and the least duration.
#include <gtest/gtest.h>

#include "tests/native/recording/delivered.h"

namespace
{

Taken until(Recording &r, int64_t end_ns, uint32_t order = KPT_ORDER_THREAD)
{
    Taking taking;
    taking.end_ns = end_ns;
    taking.order = order;
    return take_checked(r, taking);
}

TEST(End, is_when_open_calls_end)
{
    Recording r;
    r.stop(50).tape().enter(1, 10).enter(2, 20).exit(2, 30);
    EXPECT_EQ("f2[20-30] f1[10-50]S", until(r, 0).text());
    EXPECT_EQ("f2[20-30] f1[10-70]S", until(r, 70).text()) << "also after the stop";
    EXPECT_EQ("f2[20-30] f1[10-40]S", until(r, 40).text()) << "also before it";
}

TEST(End, cuts_what_would_outlive_it)
{
    Recording r;
    r.stop(50).tape().enter(1, 10).enter(2, 20).exit(2, 30).exit(1, 40);
    EXPECT_EQ("f2[20-25]C f1[10-25]C", until(r, 25).text());
    EXPECT_EQ("f2[20-30] f1[10-40]", until(r, 40).text());
    EXPECT_EQ("f2[20-30] f1[10-39]C", until(r, 39).text());
}

TEST(End, leaves_out_what_begins_after_it)
{
    Recording r;
    r.stop(90).tape(0).enter(1, 10).enter(2, 20).exit(2, 30).enter(4, 40).enter(5, 50);
    r.tape(1).enter(6, 15).exit(6, 16).enter(7, 35);
    EXPECT_EQ("f2[20-30] f1[10-35]S f6[15-16] f7[35-35]S", until(r, 35).text());
    EXPECT_EQ("f1<[10-10] f6<[15-15] f6>[15-16] f2<[20-20] f2>[20-30] f1>[10-35]S f7<[35-35] "
              "f7>[35-35]S",
              until(r, 35, KPT_ORDER_TIME).text());
    EXPECT_EQ("f1[10-35]S f6[15-16] f2[20-30] f7[35-35]S", until(r, 35, KPT_ORDER_START).text());
}

TEST(End, may_leave_nothing)
{
    Recording r;
    r.tape().enter(1, 10).exit(1, 20);
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++)
        EXPECT_EQ(0u, until(r, 9, order).batches);
}

TEST(End, of_an_earlier_run_is_its_own)
{
    Recording r;
    r.stop(50).add_run(100, 150);
    r.tape().enter(1, 10).run(1, 103).enter(2, 120);
    EXPECT_EQ("f1[10-50]S f2[120-200]S", until(r, 200).text());
    EXPECT_EQ("f1[10-50]S f2[120-130]S", until(r, 130).text());
    EXPECT_EQ("f1[10-30]SC", until(r, 30).text());
}

TEST(End, does_not_touch_threads_that_were_silent_in_the_last_run)
{
    Recording r;
    r.stop(50).add_run(100, 150);
    r.tape().enter(1, 10);
    EXPECT_EQ("f1[10-50]S", until(r, 200).text());
}

TEST(End, may_be_before_the_epoch)
{
    Recording r;
    r.tape().enter(1, 10).exit(1, 20).enter(2, 40);
    Taking taking;
    taking.convert = [](void *, const uint64_t *ticks, int64_t *ns, uint64_t count) {
        for (uint64_t i = 0; i < count; i++)
            ns[i] = static_cast<int64_t>(ticks[i]) - 100;
    };
    taking.end_ns = -50;
    EXPECT_EQ("f1[-90--80] f2[-60--50]S", take_checked(r, taking).text());
}

// A delivery omits such calls; a direct caller of replay gets no end before a start.
TEST(End, is_not_before_the_start)
{
    Recording r;
    r.tape().enter(1, 10).enter(2, 40);
    const kpti_env env{};
    const kpti_timebase time{nullptr, nullptr, 20};
    kpt_activity got[3];
    uint32_t count = 0;
    kpti_replay *replay = kpti_replay_new(&env, r.view(), 0, 1, &time, kpti_replay_options{});
    EXPECT_EQ(KPTI_FILLED_ALL, kpti_replay_fill(replay, KPTI_ENDS, got, 3, &count));
    kpti_replay_free(replay);
    ASSERT_EQ(2u, count);
    EXPECT_EQ(40, got[0].start_ns);
    EXPECT_EQ(40, got[0].end_ns);
    EXPECT_EQ(10, got[1].start_ns);
    EXPECT_EQ(20, got[1].end_ns);
}

TEST(LeastDuration, leaves_out_short_calls_and_their_callees)
{
    Recording r;
    r.recording.min_duration_ns = 10;
    r.tape().enter(1, 0).enter(2, 10).enter(4, 11).exit(4, 12).exit(2, 19).enter(2, 20);
    r.tape().enter(5, 20).exit(5, 30).exit(2, 30).exit(1, 100);
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++) {
        Taking taking;
        taking.order = order;
        const Taken t = take_checked(r, taking);
        EXPECT_EQ(1u, t.only(1).id);
        EXPECT_EQ(2u, t.only(2).id) << "ids have no gaps";
        EXPECT_EQ(2u, t.only(5).parent_id);
        EXPECT_EQ(order == KPT_ORDER_TIME ? 6u : 3u, t.activities.size());
    }
}

TEST(LeastDuration, counts_after_the_end_has_cut)
{
    Recording r;
    r.recording.min_duration_ns = 10;
    r.stop(50).tape().enter(1, 0).enter(2, 20).exit(2, 45).enter(4, 48);
    EXPECT_EQ("f2[20-30]C f1[0-30]S", until(r, 30).text());
    EXPECT_EQ("f1[0-29]S", until(r, 29).text());
    EXPECT_EQ("f2[20-45] f4[48-58]S f1[0-58]S", until(r, 58).text());
}

TEST(LeastDuration, applies_to_collections)
{
    Recording r;
    r.recording.min_duration_ns = 10;
    for (uint64_t i = 0; i < 100; i++)
        r.tape().gc_begin(1, 100 * i).gc_end(static_cast<uint32_t>(i), 0, 100 * i + (i % 2) * 50);
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++) {
        Taking taking;
        taking.order = order;
        const Taken t = take_checked(r, taking);
        for (const kpt_activity &a : t.activities) {
            if (a.phase == KPT_PHASE_BEGIN) continue;
            EXPECT_EQ(static_cast<uint64_t>(a.start_ns) / 100, a.value1);
        }
        EXPECT_EQ(order == KPT_ORDER_TIME ? 100u : 50u, t.activities.size());
    }
}

TEST(LeastDuration, may_leave_nothing)
{
    Recording r;
    r.recording.min_duration_ns = UINT64_MAX;
    r.tape().enter(1, 0).exit(1, 100000);
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++)
        EXPECT_EQ(0u, until(r, 0, order).batches);
}

} // namespace
