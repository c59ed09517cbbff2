// mark_test.cc: the host's marks: calls that contain a point, and spans that calls must not cross.
#include <gtest/gtest.h>

#include "tests/native/recording/delivered.h"

namespace
{

std::string marked(const Taken &taken)
{
    std::string out;
    for (const kpt_activity &a : taken.activities)
        if (a.flags & KPT_ACTIVITY_MARKED) out += " f" + std::to_string(a.name);
    return out;
}

TEST(Marks, reach_all_open_calls)
{
    Recording r;
    r.tape().enter(1, 1).enter(2, 2).exit(2, 3).enter(4, 4).mark(5).exit(4, 6).enter(5, 7);
    r.tape().exit(5, 8).exit(1, 9).enter(6, 10).exit(6, 11);
    const Taken t = take_checked(r);
    EXPECT_EQ(" f4 f1", marked(t));
    EXPECT_EQ(0u, t.repairs);
}

TEST(Marks, choose_what_is_delivered)
{
    Recording r;
    r.tape(0).enter(1, 1).enter(2, 2).exit(2, 3).enter(4, 4).mark(5).exit(4, 6).exit(1, 9);
    r.tape(1).enter(5, 2).exit(5, 8).enter(6, 10).mark(11).exit(6, 12);
    for (const uint32_t order : {KPT_ORDER_THREAD, KPT_ORDER_START}) {
        Taking taking;
        taking.order = order;
        const Taken all = take_checked(r, taking);
        taking.flags = KPT_DELIVER_MARKED;
        const Taken some = take(r, taking);
        ASSERT_EQ(3u, some.activities.size());
        EXPECT_EQ(3u, some.names.size()) << "only those that are needed";
        for (const kpt_activity &a : some.activities) {
            EXPECT_EQ(all.only(a.name).id, a.id);
            EXPECT_EQ(all.only(a.name).parent_id, a.parent_id);
        }
    }
}

// f2 begins the span and returns; f1 lasts. Calls that f2's caller makes within the span are f1's children.
TEST(Spans, cut_calls_that_end_within)
{
    Recording r;
    r.tape().enter(1, 1).enter(2, 2).enter(4, 3).begin_span(7, 5).exit(4, 6).exit(2, 8);
    r.tape().enter(5, 10).exit(5, 12).end_span(7, 14).exit(1, 20);
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++) {
        Taking taking;
        taking.order = order;
        const Taken t = take_checked(r, taking);
        EXPECT_EQ(0u, t.repairs);
        if (order == KPT_ORDER_TIME) continue;
        for (const uint32_t cut : {2u, 4u}) {
            EXPECT_EQ(5, t.only(cut).end_ns);
            EXPECT_EQ((uint32_t)KPT_ACTIVITY_CLAMPED, t.only(cut).flags);
        }
        EXPECT_EQ(20, t.only(1).end_ns);
        EXPECT_EQ((uint32_t)KPT_ACTIVITY_MARKED, t.only(1).flags);
        EXPECT_EQ(t.only(1).id, t.only(5).parent_id);
        EXPECT_EQ(1u, t.only(5).depth);
    }
}

TEST(Spans, within_a_call_cut_nothing)
{
    Recording r;
    r.tape().enter(1, 1).begin_span(7, 2).enter(2, 3).exit(2, 4).end_span(7, 5).exit(1, 6);
    EXPECT_EQ("f2[3-4] f1[1-6]", take_checked(r).text());
    EXPECT_EQ(0u, take(r).only(2).flags);
}

// The exit of the inner f1, which was cut, must not end the outer one.
TEST(Spans, leave_outer_calls_of_the_same_function)
{
    Recording r;
    r.tape().enter(1, 1).enter(1, 2).begin_span(7, 3).exit(1, 4).enter(2, 5).exit(2, 6);
    r.tape().end_span(7, 7).exit(1, 9);
    const Taken t = take_checked(r);
    EXPECT_EQ("f1[2-3]C f2[5-6] f1[1-9]", t.text());
    EXPECT_EQ(0u, t.repairs);
}

TEST(Spans, nest_and_overlap)
{
    Recording r;
    r.tape().enter(1, 1).enter(2, 2).begin_span(7, 3).begin_span(8, 4).exit(2, 5).enter(4, 6);
    r.tape().end_span(7, 7).begin_span(9, 8).exit(4, 9).end_span(9, 10).end_span(8, 11).exit(1, 12);
    const Taken t = take_checked(r);
    EXPECT_EQ("f2[2-3]C f4[6-7]C f1[1-12]", t.text());
    EXPECT_EQ(0u, t.repairs);
}

// A host that watches a call needs it, and its position.
TEST(Marks, watched_calls_are_delivered_with_them)
{
    Recording r;
    r.tape().enter(1, 1).enter(2, 2).watch(5, 1).exit(2, 3).enter(4, 4).exit(4, 5).exit(1, 6);
    Taking taking;
    taking.flags = KPT_DELIVER_MARKED;
    EXPECT_EQ("f2[2-3]W f1[1-6]", take(r, taking).text());
}

// As in record_function.__exit__: the calls that it makes afterwards are its caller's children.
TEST(Spans, cut_a_call_that_outlives_them)
{
    Recording r;
    r.tape().enter(1, 1).begin_span(7, 2).enter(2, 3).enter(4, 4).end_span(7, 5).exit(4, 6);
    r.tape().enter(5, 7).exit(5, 8).exit(2, 9).exit(1, 10);
    const Taken t = take_checked(r);
    EXPECT_EQ("f4[4-5]C f2[3-5]C f5[7-8] f1[1-10]", t.text());
    EXPECT_EQ(t.only(1).id, t.only(5).parent_id);
    EXPECT_EQ(0u, t.repairs);
}

// A call that an earlier span has cut is the innermost that holds a later one.
TEST(Spans, within_a_call_that_was_cut)
{
    Recording r;
    r.tape().enter(1, 1).enter(2, 2).begin_span(7, 3).enter(4, 4).begin_span(8, 5).exit(4, 6);
    r.tape().enter(5, 7).exit(5, 8).end_span(8, 9).exit(2, 10).end_span(7, 11).exit(1, 12);
    const Taken t = take_checked(r);
    EXPECT_EQ("f2[2-3]C f4[4-5]C f5[7-8] f1[1-12]", t.text());
    EXPECT_EQ(t.only(1).id, t.only(5).parent_id);
    EXPECT_EQ(0u, t.repairs);
}

// f2 was cut, and then f1 below it: calls of f2 have no parent.
TEST(Spans, cut_below_calls_that_were_cut)
{
    Recording r;
    r.tape().enter(1, 1).enter(2, 2).begin_span(7, 3).begin_span(8, 4).enter(5, 5).exit(5, 6);
    r.tape().exit(2, 7).end_span(7, 8).exit(1, 9).end_span(8, 10);
    const Taken t = take_checked(r);
    EXPECT_EQ("f2[2-3]C f1[1-4]C f5[5-6]", t.text());
    EXPECT_EQ(0u, t.only(5).parent_id);
}

TEST(Spans, that_never_end_or_never_began)
{
    Recording r;
    r.tape().enter(1, 1).end_span(6, 2).enter(2, 3).begin_span(7, 4).exit(2, 5);
    r.stop(50);
    const Taken t = take_checked(r);
    EXPECT_EQ("f2[3-4]C f1[1-50]S", t.text());
    EXPECT_EQ(0u, t.repairs);
}

// f4 is cut where the inner span ends, f2 where the outer one ends: later calls of f4 are f1's children.
TEST(Spans, two_that_end_in_one_call)
{
    Recording r;
    r.tape().enter(1, 1).begin_span(7, 2).enter(2, 3).begin_span(8, 4).enter(4, 5).end_span(8, 6);
    r.tape().end_span(7, 7).enter(5, 8).exit(5, 9).exit(4, 10).exit(2, 11).exit(1, 12);
    const Taken t = take_checked(r);
    EXPECT_EQ("f4[5-6]C f2[3-7]C f5[8-9] f1[1-12]", t.text());
    EXPECT_EQ(t.only(1).id, t.only(5).parent_id);
}

TEST(Spans, over_a_gap)
{
    Recording r;
    r.tape().enter(1, 1).begin_span(7, 2).enter(2, 3).gap(10).open(1).enter(4, 11).exit(4, 12);
    r.tape().end_span(7, 13).exit(1, 14);
    const Taken t = take_checked(r);
    EXPECT_EQ("f1[1-2]C f2[3-3]R f4[11-12] f1[10-14]B", t.text());
}

TEST(Spans, with_collections_and_lost_exits)
{
    Recording r;
    r.tape().enter(1, 1).enter(2, 2).gc_begin(0, 3).begin_span(7, 4).gc_end(1, 0, 5).enter(3, 6);
    r.tape().exit(2, 7).end_span(7, 8).gc_begin(1, 9).gc_end(2, 0, 10).exit(1, 11);
    const Taken t = take_checked(r);
    EXPECT_EQ(1u, t.repairs) << "f3 has no exit";
    EXPECT_EQ(4, t.only(2).end_ns);
    EXPECT_EQ(11, t.only(1).end_ns);
}

TEST(Callers, are_told_with_the_call)
{
    Recording r;
    r.tape().enter(1, 1).enter(2, 2).caller(11).line(5).exit(2, 3).enter(C_FUNCTION, 4).caller(12);
    r.tape().watch(8, 9).exit(C_FUNCTION, 5).gc_begin(1, 6).gc_end(3, 4, 7).exit(1, 9);
    for (const uint32_t order : {KPT_ORDER_THREAD, KPT_ORDER_START}) {
        Taking taking;
        taking.order = order;
        const Taken t = take_checked(r, taking);
        EXPECT_EQ(0u, t.only(1).value2);
        EXPECT_EQ(11u, t.only(2).value2);
        EXPECT_EQ(5u, t.only(2).line);
        EXPECT_EQ(12u, t.only(C_FUNCTION).value2);
        EXPECT_EQ(8u, t.only(C_FUNCTION).value0);
        EXPECT_EQ(4u, t.only(FUNCTIONS).value2) << "of the collection, as before";
        EXPECT_EQ(0u, t.repairs);
    }
}

// f2 and f4 are cut, so f5 is delivered as f1's callee, with the line of f1's call of f2.
TEST(Callers, of_calls_that_cut_ones_make)
{
    Recording r;
    r.tape().enter(1, 1).enter(2, 2).caller(11).enter(4, 3).caller(22).begin_span(7, 5);
    r.tape().enter(5, 6).caller(44).enter(6, 7).caller(55).exit(6, 8).exit(5, 9).exit(4, 10);
    r.tape().exit(2, 11).end_span(7, 12).exit(1, 20);
    const Taken t = take_checked(r);
    EXPECT_EQ(22u, t.only(4).value2);
    EXPECT_EQ(t.only(1).id, t.only(5).parent_id);
    EXPECT_EQ(11u, t.only(5).value2);
    EXPECT_EQ(55u, t.only(6).value2);
}

// As in a future's callback. f2 is cut where the span ends, and so is f4, which is in it; f5 is f1's child.
TEST(FarEnds, cut_calls_that_outlive_the_span)
{
    Recording r;
    r.tape().enter(1, 1).begin_span(7, 2).enter(2, 3).enter(4, 4).exit(4, 6).enter(5, 7).exit(5, 8);
    r.tape().exit(2, 9).exit(1, 10);
    r.tape(1).enter(6, 1).enter(8, 4).exit(8, 7).exit(6, 9);
    r.cross_thread_end(7, 5);
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++) {
        Taking taking;
        taking.order = order;
        const Taken t = take_checked(r, taking);
        EXPECT_EQ(0u, t.repairs);
        if (order == KPT_ORDER_TIME) continue;
        EXPECT_EQ(t.only(1).id, t.only(5).parent_id);
        for (const uint32_t cut : {2u, 4u}) {
            EXPECT_EQ(5, t.only(cut).end_ns);
            EXPECT_EQ((uint32_t)KPT_ACTIVITY_CLAMPED, t.only(cut).flags);
        }
    }
    EXPECT_EQ("f4[4-5]C f2[3-5]C f5[7-8] f1[1-10] f8[4-7] f6[1-9]", take(r).text());
}

// f2 began the span and returned before its end: f2 is cut at the begin, and the span ends later.
TEST(FarEnds, are_known_at_the_begin)
{
    Recording r;
    r.tape().enter(1, 1).enter(2, 2).begin_span(7, 3).exit(2, 4).enter(4, 8).exit(4, 9).exit(1, 10);
    r.cross_thread_end(7, 6);
    EXPECT_EQ("f2[2-3]C f4[8-9] f1[1-10]", take_checked(r).text());
    Recording early;
    early.tape().enter(1, 1).enter(2, 2).begin_span(7, 3).exit(2, 5).exit(1, 10);
    early.cross_thread_end(7, 4);
    EXPECT_EQ("f2[2-5] f1[1-10]", take_checked(early).text()) << "f2 contains all of it";
}

TEST(FarEnds, of_events_at_the_same_time_come_last)
{
    Recording r;
    r.tape().enter(1, 1).begin_span(7, 5).enter(2, 5).line(3).exit(2, 5).enter(4, 6).exit(4, 7);
    r.tape().exit(1, 8);
    r.cross_thread_end(7, 5).cross_thread_end(9, 5).cross_thread_end(8, 6);
    EXPECT_EQ("f2[5-5] f4[6-7] f1[1-8]", take_checked(r).text());
}

TEST(FarEnds, after_the_last_event)
{
    Recording r;
    r.tape().enter(1, 1).begin_span(7, 2).begin_span(8, 3).enter(2, 4);
    r.stop(50).cross_thread_end(7, 20).cross_thread_end(8, 50);
    EXPECT_EQ("f2[4-20]C f1[1-50]S", take_checked(r).text());
}

// Blocks of times and chunks are between begin and end.
TEST(FarEnds, wherever_the_events_are)
{
    for (const uint64_t ticks : {4u, 1033u, 2057u, 10009u, 15000u}) {
        Recording r;
        r.tape().enter(1, 1).begin_span(7, 2).enter(2, 3);
        for (uint32_t i = 0; i < 5000; i++)
            r.tape().enter(4, 10 + 2 * i).exit(4, 11 + 2 * i);
        r.tape().chunk(20000).exit(2, 20001).exit(1, 20002);
        r.cross_thread_end(7, ticks);
        EXPECT_EQ(static_cast<int64_t>(ticks), take_checked(r).only(2).end_ns);
        EXPECT_EQ(20002, take(r).only(1).end_ns);
    }
}

TEST(FarEnds, of_an_earlier_run_do_nothing)
{
    Recording r;
    r.stop(100).add_run(200, 300);
    r.tape().enter(1, 1).begin_span(7, 2).enter(2, 3).exit(2, 4);
    r.tape().run(1, 200).open(1).enter(2, 210).exit(2, 250).exit(1, 260);
    r.cross_thread_end(7, 220);
    EXPECT_EQ("f2[3-4] f1[1-100]S f2[210-250] f1[200-260]B", take_checked(r).text());
}

TEST(FarEnds, where_time_goes_backwards)
{
    Recording r;
    r.tape().enter(1, 1).begin_span(7, 2).begin_span(8, 3).enter(2, 4).enter(4, 5).exit(4, 60);
    r.tape().exit(2, 70).exit(1, 80);
    r.cross_thread_end(8, 20).cross_thread_end(7, 30);
    Taking taking;
    taking.convert = [](void *, const uint64_t *ticks, int64_t *ns, uint64_t count) {
        for (uint64_t i = 0; i < count; i++)
            ns[i] = -static_cast<int64_t>(ticks[i]);
    };
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++) {
        taking.order = order;
        (void)take_checked(r, taking);
    }
}

} // namespace
