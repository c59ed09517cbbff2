// part_test.cc: calls that are cut at spans of the host go on behind the cut, as parts with one id.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/native/recording/delivered.h"

namespace
{

Taking in_parts(uint32_t order = KPT_ORDER_THREAD)
{
    Taking taking;
    taking.order = order;
    taking.flags = KPT_DELIVER_PARTS;
    return taking;
}

// The example of the issue: f2 ("batch") begins the span in a callee (f4, "step") and then calls f5 ("tail").
TEST(Parts, go_on_after_a_span_began)
{
    Recording r;
    r.tape().enter(1, 1).enter(2, 2).enter(4, 3).begin_span(7, 5).exit(4, 6).enter(5, 8);
    r.tape().exit(5, 10).exit(2, 12).end_span(7, 14).exit(1, 20);
    const Taken t = take_checked(r, in_parts());
    EXPECT_EQ("f4[3-5]C f2[2-5]C f5[8-10] f2[6-12]+ f1[1-20]", t.text()) << "f4 just returns";
    EXPECT_EQ(0u, t.repairs);
    EXPECT_EQ(2u, t.only(5).parent_id) << "f2's";
    EXPECT_EQ("f4[3-5]C f2[2-5]C f5[8-10] f1[1-20]", take_checked(r).text()) << "not asked for";
    const Taken by_start = take_checked(r, in_parts(KPT_ORDER_START));
    EXPECT_EQ("f1[1-20] f2[2-5]C f4[3-5]C f2[6-12]+ f5[8-10]", by_start.text());
    const Taken by_time = take_checked(r, in_parts(KPT_ORDER_TIME));
    EXPECT_EQ("f1<[1-1] f2<[2-2] f4<[3-3] f4>[3-5]C f2>[2-5]C f2<[6-6]+ f5<[8-8] f5>[8-10] "
              "f2>[6-12]+ f1>[1-20]",
              by_time.text());
}

TEST(Parts, go_on_after_a_span_ended)
{
    Recording r;
    r.tape().enter(1, 1).begin_span(7, 2).enter(2, 3).enter(4, 4).end_span(7, 5).enter(5, 7);
    r.tape().exit(5, 8).exit(4, 9).exit(2, 12).exit(1, 13);
    EXPECT_EQ("f4[4-5]C f2[3-5]C f5[7-8] f4[7-9]+ f2[7-12]+ f1[1-13]",
              take_checked(r, in_parts()).text());
}

// As prof.step() does: one span ends and the next begins in one call, several times.
TEST(Parts, of_one_call_are_many)
{
    Recording r;
    r.tape().enter(1, 1).begin_span(1, 2).enter(2, 3).end_span(1, 4).mark(5).begin_span(2, 6);
    r.tape().mark(7).end_span(2, 8).mark(9).begin_span(3, 10).mark(11).exit(2, 12).end_span(3, 13);
    r.tape().exit(1, 14);
    EXPECT_EQ("f2[3-4]C f2[5-10]C+ f2[11-12]+ f1[1-14]", take_checked(r, in_parts()).text())
        << "the second span lies in f2";
}

TEST(Parts, of_nested_spans_that_begin_at_once)
{
    Recording r;
    r.tape().enter(1, 1).enter(2, 2).begin_span(7, 3).begin_span(8, 4).mark(5).end_span(8, 6);
    r.tape().mark(7).exit(2, 8).end_span(7, 9).exit(1, 10);
    EXPECT_EQ("f2[2-3]C f2[4-8]+ f1[1-10]", take_checked(r, in_parts()).text())
        << "f2 contains the second span, and so goes on where that begins";
}

TEST(Parts, keep_lines_values_and_what_was_before)
{
    Recording r;
    r.tape().open(1).enter(2, 2).line(77).caller(5).watch(9, 3).begin_span(7, 3).enter(4, 4);
    r.tape().caller(78).exit(4, 5).exit(2, 6).exit(1, 7).end_span(7, 8);
    r.stop(10);
    const Taken t = take_checked(r, in_parts(KPT_ORDER_START));
    EXPECT_EQ("f1[0-3]BC f2[2-3]CW f1[4-7]B+ f2[4-6]W+ f4[4-5]", t.text());
    const kpt_activity &part = t.activities[3];
    EXPECT_EQ(77u, part.line);
    EXPECT_EQ(9u, part.value0);
    EXPECT_EQ(3u, part.value1);
    EXPECT_EQ(5u, part.value2);
    EXPECT_EQ(78u, t.only(4).value2) << "its caller is f2, not what lies below";
}

// Only the part that contains the operator is marked.
TEST(Parts, are_marked_each_by_itself)
{
    Recording r;
    r.tape().enter(1, 1).enter(2, 2).begin_span(7, 3).enter(4, 4).mark(5).exit(4, 6).exit(2, 7);
    r.tape().end_span(7, 8).exit(1, 9);
    Taking taking = in_parts();
    taking.flags |= KPT_DELIVER_MARKED;
    EXPECT_EQ("f4[4-6] f2[4-7]+ f1[1-9]", take(r, taking).text());
}

// The thread waits in f4; another thread ends its span, and marks the end again when its own record is
// closed.
TEST(Parts, go_on_where_another_thread_ended_the_span)
{
    Recording r;
    r.tape().enter(1, 1).begin_span(7, 2).enter(2, 3).enter(4, 4).exit(4, 20).exit(2, 21).exit(1,
                                                                                               22);
    r.cross_thread_end(7, 10).cross_thread_end(7, 12);
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++)
        (void)take_checked(r, in_parts(order));
    EXPECT_EQ("f4[4-10]C f2[3-10]C f4[12-20]+ f2[12-21]+ f1[1-22]",
              take_checked(r, in_parts()).text());
}

TEST(Parts, of_collections_lost_exits_and_gaps)
{
    Recording r;
    r.tape().enter(1, 1).gc_begin(2, 2).begin_span(7, 3).gc_end(5, 6, 4).enter(2, 5).exit(1, 6);
    r.tape().end_span(7, 7).enter(1, 8).begin_span(8, 9).gap(20).open(1).exit(1, 21).end_span(8,
                                                                                              22);
    const Taken t = take_checked(r, in_parts());
    EXPECT_EQ("gc2[2-3]C f1[1-3]C gc2[4-4]+ f2[5-6]R f1[4-6]+ f1[8-9]C f1[20-21]B", t.text());
    EXPECT_EQ(5u, t.activities[2].value1) << "counts come with the end";
    (void)take_checked(r, in_parts(KPT_ORDER_START));
    (void)take_checked(r, in_parts(KPT_ORDER_TIME));
}

TEST(Parts, end_with_the_run)
{
    Recording r;
    r.tape().enter(1, 1).begin_span(7, 2).enter(2, 3).end_span(7, 4).mark(6).begin_span(8, 8);
    r.stop(50);
    EXPECT_EQ("f2[3-4]C f2[6-50]S+ f1[1-50]S", take_checked(r, in_parts()).text());
    Recording silent;
    silent.tape().enter(1, 1).begin_span(7, 2).enter(2, 3).end_span(7, 4);
    silent.stop(50);
    EXPECT_EQ("f2[3-4]C f1[1-50]S", take_checked(silent, in_parts()).text());
}

TEST(Parts, shorter_than_the_least_duration)
{
    Recording r;
    r.tape().enter(1, 1).enter(2, 2).begin_span(7, 12).exit(2, 13).end_span(7, 14).begin_span(8,
                                                                                              15);
    r.tape().enter(4, 16).end_span(8, 17).mark(18).exit(4, 40).exit(1, 50);
    r.recording.min_duration_ns = 5;
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++) {
        const Taken t = take(r, in_parts(order));
        uint64_t max = 0;
        for (const kpt_activity &a : t.activities)
            max = std::max(max, a.id);
        EXPECT_EQ(3u, max) << "f1, f2, and the second part of f4";
    }
}

// --- programs at random ---------------------------------------------------------------------------

struct Span {
    uint64_t begin;
    uint64_t end;
};

struct Program {
    Recording cut;   // with spans
    Recording plain; // the same calls, with points instead of spans
    std::vector<Span> spans;
};

// Spans that overlap each other can't be nested with calls; with NESTED there are none.
void make(Program *p, uint32_t seed, bool nested)
{
    std::mt19937 engine(seed);
    const auto random = [&] { return static_cast<uint32_t>(engine()); };
    std::vector<uint32_t> stack;
    std::map<uint32_t, size_t> open; // span by number
    uint64_t now = 1;
    for (int i = 0; i < 300; i++, now += 1 + random() % 3) {
        const uint32_t what = random() % 10;
        if (what < 4 && stack.size() < 20) {
            stack.push_back(1 + random() % 8);
            p->cut.tape().enter(stack.back(), now);
            p->plain.tape().enter(stack.back(), now);
        } else if (what < 7 && !stack.empty()) {
            p->cut.tape().exit(stack.back(), now);
            p->plain.tape().exit(stack.back(), now);
            stack.pop_back();
        } else if (what == 7) {
            const auto number = static_cast<uint32_t>(p->spans.size() + 1);
            open[number] = p->spans.size();
            p->spans.push_back({now, UINT64_MAX});
            p->cut.tape().begin_span(number, now);
            p->plain.tape().mark(now);
        } else if (what == 8 && !open.empty()) {
            const size_t which = nested ? open.size() - 1 : random() % open.size();
            auto ended = std::next(open.begin(), static_cast<long>(which));
            p->spans[ended->second].end = now;
            if (random() % 8)
                p->cut.tape().end_span(ended->first, now);
            else
                p->cut.cross_thread_end(ended->first, now);
            p->plain.tape().mark(now);
            open.erase(ended);
        } else {
            p->cut.tape().mark(now);
            p->plain.tape().mark(now);
        }
    }
    for (const auto &[number, span] : open)
        p->spans[span].end = now + 5;
    p->cut.stop(now + 5);
    p->plain.stop(now + 5);
}

bool crosses(const kpt_activity &a, const Span &span)
{
    const auto start = static_cast<uint64_t>(a.start_ns);
    const auto end = static_cast<uint64_t>(a.end_ns);
    return (start < span.begin && span.begin < end && end < span.end) ||
           (span.begin < start && start < span.end && span.end < end);
}

TEST(Parts, of_random_programs_are_the_calls_and_cross_nothing)
{
    uint64_t parts = 0;
    for (uint32_t seed = 0; seed < 400; seed++) {
        Program p;
        const bool nested = seed % 4 != 0;
        make(&p, seed, nested);
        for (uint32_t order : {KPT_ORDER_THREAD, KPT_ORDER_START}) {
            const Taken got = take_checked(p.cut, in_parts(order));
            Taking plain;
            plain.order = order;
            std::map<uint64_t, kpt_activity> calls;
            for (const kpt_activity &a : take_checked(p.plain, plain).activities)
                calls[a.id] = a;
            std::map<uint64_t, int64_t> missing; // by id: the time that its parts lack
            for (const auto &[id, call] : calls)
                missing[id] = call.end_ns - call.start_ns;
            for (const kpt_activity &a : got.activities) {
                const kpt_activity &call = calls[a.id];
                EXPECT_EQ(call.name, a.name);
                EXPECT_EQ(call.parent_id, a.parent_id);
                EXPECT_EQ(call.depth, a.depth);
                if (!(a.flags & KPT_ACTIVITY_CONTINUED)) {
                    EXPECT_EQ(call.start_ns, a.start_ns);
                }
                missing[a.id] -= a.end_ns - a.start_ns;
                parts += (a.flags & KPT_ACTIVITY_CONTINUED) != 0;
                for (const Span &span : p.spans)
                    EXPECT_FALSE(nested && crosses(a, span)) << "seed " << seed << " call " << a.id;
            }
            // At most three ticks pass until the next event: so much is lost at each begin and end of a span.
            for (const auto &[id, ns] : missing)
                EXPECT_LE(ns, static_cast<int64_t>(6 * p.spans.size())) << "seed " << seed;
            if (::testing::Test::HasFailure()) return;
        }
        (void)take_checked(p.cut, in_parts(KPT_ORDER_TIME));
    }
    EXPECT_GT(parts, 1000u);
}

} // namespace
