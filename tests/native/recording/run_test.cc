// run_test.cc: chunks, runs, gaps, the calls that were open at each, and the counter's upper half.
#include <gtest/gtest.h>

#include "tests/native/recording/delivered.h"

namespace
{

TEST(Run, ends_what_is_open)
{
    Recording r;
    r.stop(50).tape().enter(1, 10).enter(2, 20);
    const Taken t = take_checked(r);
    EXPECT_EQ("f2[20-50]S f1[10-50]S", t.text());
    EXPECT_EQ(0u, t.repairs) << "that is no repair";
}

TEST(Run, begins_what_was_open)
{
    Recording r;
    r.stop(50).tape().chunk(5).open(1).line(11).open(2).enter(4, 20).exit(4, 30).exit(2, 40);
    const Taken t = take_checked(r);
    EXPECT_EQ("f4[20-30] f2[0-40]B f1[0-50]BS", t.text());
    EXPECT_EQ(11u, t.only(1).line);
    EXPECT_EQ(0u, t.only(2).line) << "where it was then is not known";
    EXPECT_EQ(0u, t.repairs);
}

TEST(Run, is_followed_by_another)
{
    Recording r;
    r.stop(50).add_run(100, 150);
    r.tape().enter(1, 10).enter(2, 20);
    r.tape().run(1, 103).open(1).open(5).exit(5, 120).enter(4, 130);
    const Taken t = take_checked(r);
    EXPECT_EQ("f2[20-50]S f1[10-50]S f5[100-120]B f4[130-150]S f1[100-150]BS", t.text());
    EXPECT_EQ(0u, t.repairs);
}

TEST(Run, keeps_exits_from_calls_of_the_one_before)
{
    Recording r;
    r.stop(50).add_run(100, 150);
    r.tape().enter(1, 10).run(1, 103).exit(1, 120);
    const Taken t = take_checked(r);
    EXPECT_EQ("f1[10-50]S", t.text());
    EXPECT_EQ(1u, t.repairs);
}

TEST(Run, bounds_ticks)
{
    Recording r;
    r.stop(50).tape().enter(1, 10).exit(1, 60).enter(2, 70).exit(2, 80);
    const Taken t = take_checked(r);
    EXPECT_EQ("f1[10-50] f2[50-50]", t.text());
    EXPECT_EQ(0u, t.repairs) << "a callback may be in flight when it is stopped";
}

TEST(Run, that_does_not_exist)
{
    Recording r;
    r.tape().enter(1, 10).run(7, 20).enter(2, 30).exit(2, 40).run(0, 45);
    r.tape().head().sequence = 1;
    r.tape().exit(1, 50);
    const Taken t = take_checked(r);
    EXPECT_EQ("f1[10-50]", t.text());
    EXPECT_EQ(1u, t.repairs);
}

TEST(Run, without_runs_there_is_nothing)
{
    Recording r;
    r.tape().enter(1, 10).exit(1, 20);
    (void)r.view();
    kpti_recording view = r.recording;
    view.run_count = 0;
    const kpti_env env{};
    const kpti_timebase time{};
    kpt_activity activity;
    uint32_t count = 9;
    kpti_replay *replay = kpti_replay_new(&env, &view, 0, 1, &time, kpti_replay_options{});
    EXPECT_EQ(KPTI_FILLED_ALL, kpti_replay_fill(replay, KPTI_ENDS, &activity, 1, &count));
    EXPECT_EQ(0u, count);
    EXPECT_EQ(1u, kpti_replay_repairs(replay));
    EXPECT_EQ(0u, kpti_replay_calls(replay));
    kpti_replay_free(replay);
}

TEST(Chunk, continues_the_one_before)
{
    Recording r;
    r.tape().enter(1, 10).enter(2, 20).chunk(25).exit(2, 30).chunk(35).exit(1, 40);
    const Taken t = take_checked(r);
    EXPECT_EQ("f2[20-30] f1[10-40]", t.text());
    EXPECT_EQ(0u, t.repairs);
}

TEST(Chunk, tells_nothing_new_without_a_gap)
{
    Recording r;
    r.tape().enter(1, 10).enter(2, 20);
    r.tape().chunk(25).open(1).line(3).open(2).watch(1, 1).line(4).exit(2, 30).exit(1, 40);
    const Taken t = take_checked(r);
    EXPECT_EQ("f2[20-30] f1[10-40]", t.text());
    EXPECT_EQ(10u, t.only(1).line);
    EXPECT_EQ(0u, t.repairs);
}

TEST(Chunk, may_be_empty)
{
    Recording r;
    r.tape().chunk(1).chunk(2).enter(1, 10).chunk(11).chunk(12).exit(1, 20).chunk(21);
    EXPECT_EQ("f1[10-20]", take_checked(r).text());
    Recording empty;
    empty.tape().chunk(1);
    (void)empty.tape(1);
    const Taken t = take_checked(empty);
    EXPECT_EQ(0u, t.batches);
    EXPECT_EQ(0u, t.repairs);
}

TEST(Gap, ends_what_was_open_and_begins_what_is)
{
    Recording r;
    r.stop(90).tape().enter(1, 10).enter(2, 20).exit(2, 22).enter(4, 24);
    r.tape().gap(50).open(1).line(7).open(5).exit(5, 60).exit(1, 70);
    const Taken t = take_checked(r);
    EXPECT_EQ("f2[20-22] f4[24-24]R f1[10-24]R f5[50-60]B f1[50-70]B", t.text());
    EXPECT_EQ(7u, t.activities.back().line);
    EXPECT_EQ(2u, t.repairs);
}

TEST(Gap, is_a_gap_by_its_sequence_alone)
{
    Recording r;
    r.tape().enter(1, 10).gap(50, 0).open(1).exit(1, 70);
    EXPECT_EQ("f1[10-10]R f1[50-70]B", take_checked(r).text());
}

TEST(Gap, is_a_gap_by_dropped_events_alone)
{
    Recording r;
    r.tape().enter(1, 10).chunk(50).open(1).exit(1, 70);
    EXPECT_EQ("f1[10-70]", take_checked(r).text());
    Recording dropped;
    dropped.tape().enter(1, 10).chunk(50);
    dropped.tape().head().dropped_before = 1;
    dropped.tape().open(1).exit(1, 70);
    EXPECT_EQ("f1[10-10]R f1[50-70]B", take_checked(dropped).text());
}

TEST(Gap, before_the_first_chunk_that_a_ring_has_kept)
{
    Recording r;
    r.stop(90).tape().gap(50).open(1).enter(2, 60).exit(2, 70);
    const Taken t = take_checked(r);
    EXPECT_EQ("f2[60-70] f1[50-90]BS", t.text()) << "not since the run began: that is not known";
    EXPECT_EQ(0u, t.repairs);
}

TEST(Gap, is_none_where_a_run_begins)
{
    Recording r;
    r.stop(50).add_run(100, 150);
    r.tape().enter(1, 10).run(1, 110);
    r.tape().head().dropped_before = 5; // of the previous run
    r.tape().open(1);
    EXPECT_EQ("f1[10-50]S f1[100-150]BS", take_checked(r).text());
}

TEST(Gap, begins_not_before_what_is_known)
{
    Recording r;
    r.tape().enter(1, 10).exit(1, 60).gap(50).open(2).exit(2, 55);
    const Taken t = take_checked(r);
    EXPECT_EQ("f1[10-60] f2[60-60]B", t.text());
    EXPECT_EQ(1u, t.repairs);
}

constexpr uint64_t wrap = UINT64_C(1) << 32;

TEST(Epoch, changes_the_upper_half)
{
    Recording r;
    r.stop(10 * wrap).tape().enter(1, wrap - 10).enter(2, wrap + 5).exit(2, 3 * wrap + 7);
    r.tape().exit(1, 3 * wrap + 8);
    const Taken t = take_checked(r);
    EXPECT_EQ("f2[4294967301-12884901895] f1[4294967286-12884901896]", t.text());
    EXPECT_EQ(0u, t.repairs);
}

TEST(Epoch, is_the_chunks_at_first)
{
    Recording r;
    r.stop(10 * wrap).tape().enter(1, 5).chunk(4 * wrap + 1).exit(1, 4 * wrap + 9);
    const Taken t = take_checked(r);
    EXPECT_EQ("f1[5-17179869193]", t.text());
    EXPECT_EQ(0u, t.repairs);
}

TEST(Epoch, that_goes_back_is_a_processor_that_lags)
{
    Recording r;
    r.stop(10 * wrap).tape().enter(1, wrap - 2).enter(2, wrap + 1).exit(2, wrap - 1);
    r.tape().exit(1, wrap + 3);
    const Taken t = take_checked(r);
    EXPECT_EQ("f2[4294967297-4294967297] f1[4294967294-4294967299]", t.text());
    EXPECT_EQ(1u, t.repairs);
}

// An EPOCH's second word in another block of times than its first, where it could pass for an event.
TEST(Epoch, may_stand_anywhere)
{
    for (uint64_t before = 1018; before < 1030; before++) {
        Recording r;
        r.stop(10 * wrap).tape().chunk(0);
        for (uint64_t i = 0; i < before; i++)
            r.tape().line(1); // of no call
        r.tape().enter(1, 1).exit(1, 2 * wrap + 3).watch(3 * wrap, 2).enter(2, 2 * wrap + 5);
        r.tape().watch(9 * wrap, 1).exit(2, 2 * wrap + 9);
        const Taken t = take_checked(r);
        EXPECT_EQ("f1[1-8589934595] f2[8589934597-8589934601]W", t.text()) << before;
        EXPECT_EQ(before + 1, t.repairs);
    }
}

} // namespace
