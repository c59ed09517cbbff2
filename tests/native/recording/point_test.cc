// point_test.cc: points that the host marked with a number: their position, their order, and that all other
// activities are the same as without them.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/native/recording/delivered.h"
#include "tests/native/recording/random_program.h"

namespace
{

Taking with_points(uint32_t order)
{
    Taking taking;
    taking.order = order;
    taking.flags = KPT_DELIVER_POINTS;
    return taking;
}

TEST(Points, lie_in_the_call_that_is_open)
{
    Recording r;
    r.tape().mark(1, 5).enter(1, 2).mark(3, 6).enter(2, 4).mark(5, 7).exit(2, 6).mark(7, 8);
    r.tape().exit(1, 9).mark(10, 9);
    r.tape(1).enter(4, 1).mark(5, 7).exit(4, 8);
    const Taken t = take_checked(r, with_points(KPT_ORDER_THREAD));
    EXPECT_EQ("5@1 6@3 in f1 7@5 in f2 8@7 in f1 9@10 7@5 in f4", t.points_text());
    EXPECT_EQ("f2[4-6] f1[2-9] f4[1-8]", t.text());
    EXPECT_EQ(1u, t.points.back().activity.thread);
    EXPECT_EQ(static_cast<uint32_t>(KPT_ACTIVITY_MARKED), t.only(2).flags);
    EXPECT_EQ(1u, t.points[2].activity.depth - t.only(2).depth);
    const Taken by_time = take_checked(r, with_points(KPT_ORDER_TIME));
    EXPECT_EQ("5@1 6@3 in f1 7@5 in f2 7@5 in f4 8@7 in f1 9@10", by_time.points_text());
}

TEST(Points, come_only_if_asked_for_and_numbered)
{
    Recording r;
    r.tape().enter(1, 1).mark(2, 5).mark(3, 0).exit(1, 4);
    EXPECT_TRUE(take_checked(r).points.empty());
    EXPECT_EQ("5@2 in f1", take_checked(r, with_points(KPT_ORDER_THREAD)).points_text());
    EXPECT_EQ(1u, take(r, with_points(KPT_ORDER_THREAD)).only(1).id) << "points take no ids";
}

TEST(Points, of_a_thread_that_calls_nothing)
{
    Recording r;
    r.tape(0).mark(7, 3);
    r.tape(1).mark(5, 4);
    EXPECT_EQ("3@7 4@5", take_checked(r, with_points(KPT_ORDER_THREAD)).points_text());
    EXPECT_EQ("4@5 3@7", take_checked(r, with_points(KPT_ORDER_TIME)).points_text());
}

// f2 is too short: its points are f1's.
TEST(Points, in_calls_that_are_left_out)
{
    Recording r;
    r.tape().enter(1, 1).enter(2, 2).mark(3, 5).enter(4, 3).mark(3, 6).exit(4, 4).exit(2, 5);
    r.tape().enter(5, 10).mark(50, 7).exit(5, 90).exit(1, 100);
    r.recording.min_duration_ns = 10;
    for (const uint32_t order : {KPT_ORDER_THREAD, KPT_ORDER_TIME})
        EXPECT_EQ("5@3 in f1 6@3 in f1 7@50 in f5",
                  take_checked(r, with_points(order)).points_text());
}

TEST(Points, after_the_end_are_left_out)
{
    Recording r;
    r.tape().enter(1, 1).mark(3, 5).mark(20, 6).exit(1, 30).mark(31, 7);
    for (const uint32_t order : {KPT_ORDER_THREAD, KPT_ORDER_TIME}) {
        Taking taking = with_points(order);
        taking.end_ns = 10;
        EXPECT_EQ("5@3 in f1", take_checked(r, taking).points_text());
    }
}

TEST(Points, in_calls_that_are_cut)
{
    Recording r;
    r.tape().enter(1, 1).enter(2, 2).mark(3, 5).begin_span(7, 4).mark(5, 6).exit(2, 6).mark(7, 8);
    r.tape().end_span(7, 8).exit(1, 9);
    const Taken t = take_checked(r, with_points(KPT_ORDER_THREAD));
    EXPECT_EQ("5@3 in f2 6@5 in f1 8@7 in f1", t.points_text());
    EXPECT_EQ("f2[2-4]C f1[1-9]", t.text());
}

TEST(Points, with_marked_calls_only)
{
    Recording r;
    r.tape().enter(1, 1).enter(2, 2).exit(2, 3).enter(4, 4).mark(5, 6).exit(4, 6).exit(1, 9);
    Taking taking = with_points(KPT_ORDER_THREAD);
    taking.flags |= KPT_DELIVER_MARKED;
    const Taken t = take(r, taking);
    EXPECT_EQ("f4[4-6] f1[1-9]", t.text());
    EXPECT_EQ("6@5 in f4", t.points_text());
}

using Found = std::vector<std::tuple<uint32_t, int64_t, uint64_t>>; // thread, time, number

Found found(const Taken &taken)
{
    Found all;
    for (const Taken::Point &p : taken.points)
        all.emplace_back(p.activity.thread, p.activity.end_ns, p.activity.value0);
    std::sort(all.begin(), all.end());
    return all;
}

void coarse_points(void *, const uint64_t *ticks, int64_t *ns, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        ns[i] = static_cast<int64_t>(ticks[i] / 200);
}

// Everything else is the same, and both orders have the same points.
TEST(Points, of_random_programs)
{
    size_t points = 0;
    for (uint32_t seed = 0; seed < 120 && !HasFailure(); seed++) {
        ProgramOptions options;
        options.points = true;
        options.damage = seed % 4 == 3;
        Recording r;
        write_random_program(&r, seed, options);
        r.recording.min_duration_ns = seed % 3 == 1 ? 20 : 0;
        Found first;
        for (const uint32_t order : {KPT_ORDER_THREAD, KPT_ORDER_TIME}) {
            Taking taking = with_points(order);
            taking.end_ns = seed % 5 == 2 ? 3000 : 0;
            taking.convert = seed % 2 ? coarse_points : nullptr;
            taking.batch_size = seed % 7;
            const Taken t = take_checked(r, taking);
            taking.flags = 0;
            EXPECT_EQ(take_checked(r, taking).text(), t.text()) << "seed " << seed;
            points += t.points.size();
            if (order == KPT_ORDER_THREAD)
                first = found(t);
            else
                EXPECT_EQ(first, found(t)) << "seed " << seed;
        }
    }
    EXPECT_GT(points, 5000u);
}

} // namespace
