// repair_test.cc: replay of a thread's events, and each repair with its count.
#include <gtest/gtest.h>

#include "tests/native/recording/delivered.h"

namespace
{

TEST(Calls, nest)
{
    Recording r;
    r.tape().enter(1, 10).enter(2, 20).exit(2, 30).enter(3, 40).exit(3, 50).exit(1, 90);
    const Taken t = take_checked(r);
    EXPECT_EQ("f2[20-30] f3[40-50] f1[10-90]", t.text());
    EXPECT_EQ(0u, t.repairs);
    EXPECT_EQ(1u, t.only(1).id);
    EXPECT_EQ(2u, t.only(2).id);
    EXPECT_EQ(1u, t.only(2).parent_id);
    EXPECT_EQ(3u, t.only(3).id);
    EXPECT_EQ(1u, t.only(3).depth);
    EXPECT_EQ(KPT_KIND_PYTHON, t.only(2).kind);
    EXPECT_EQ(KPT_KIND_C, t.only(3).kind);
}

TEST(Calls, recurse_and_resume)
{
    Recording r;
    r.tape().enter(1, 1).enter(1, 2).exit(1, 3).enter(1, 4).enter(1, 5).exit(1, 6).exit(1, 7).exit(
        1, 8);
    EXPECT_EQ("f1[2-3] f1[5-6] f1[4-7] f1[1-8]", take_checked(r).text());
}

// The low half of the counter in these events is of a time before the chunk, and would be one long after it.
TEST(Calls, that_are_open_at_a_chunk_have_no_times)
{
    const uint64_t base = UINT64_C(7) << 32 | 100;
    for (const bool is_gap : {false, true}) {
        Recording r;
        r.stop(base + 1000).tape().chunk(base - 50).enter(1, base - 40).line(17);
        if (is_gap)
            r.tape().gap(base);
        else
            r.tape().chunk(base);
        r.tape().raw(KPTI_EVENT_OPEN, 1, 4'000'000'000).raw(KPTI_EVENT_LINE, 17, 4'000'000'000);
        r.tape().enter(2, base + 10).exit(2, base + 20).exit(1, base + 30);
        const Taken t = take_checked(r);
        EXPECT_EQ(is_gap ? 1u : 0u, t.repairs); // the call that was open at the gap
        EXPECT_EQ(static_cast<int64_t>(base + 10), t.only(2).start_ns);
        EXPECT_EQ(static_cast<int64_t>(base + 20), t.only(2).end_ns);
    }
}

TEST(Calls, of_no_length)
{
    Recording r;
    r.tape().enter(1, 5).enter(2, 5).exit(2, 5).enter(2, 5).exit(2, 5).exit(1, 5).enter(1, 5).exit(
        1, 5);
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++) {
        Taking taking;
        taking.order = order;
        const Taken t = take_checked(r, taking);
        EXPECT_EQ(order == KPT_ORDER_TIME ? 8u : 4u, t.activities.size());
        EXPECT_EQ(0u, t.repairs);
    }
}

TEST(Calls, have_lines)
{
    Recording r;
    r.tape().enter(1, 1).line(17).enter(2, 2).enter(3, 3).exit(3, 4).exit(2, 5).exit(1, 6);
    r.tape().enter(4, 7).watch(1, 2).line(33).exit(4, 8);
    const Taken t = take_checked(r);
    EXPECT_EQ(17u, t.only(1).line);
    EXPECT_EQ(20u, t.only(2).line) << "the function's first, as none was recorded";
    EXPECT_EQ(0u, t.only(3).line) << "C functions have none";
    EXPECT_EQ(33u, t.only(4).line);
    EXPECT_EQ(0u, t.repairs);
}

TEST(Calls, are_watched)
{
    Recording r;
    r.tape().enter(1, 1).line(5).watch(UINT64_MAX, 77).enter(2, 2).exit(2, 3).exit(1, 4);
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++) {
        Taking taking;
        taking.order = order;
        const Taken t = take_checked(r, taking);
        for (const kpt_activity &a : t.activities) {
            const bool watched = a.name == 1;
            EXPECT_EQ(watched ? uint32_t{KPT_ACTIVITY_WATCHED} : 0u, a.flags);
            EXPECT_EQ(watched ? UINT64_MAX : 0u, a.value0);
            EXPECT_EQ(watched ? 77u : 0u, a.value1);
            EXPECT_EQ(0u, a.value2);
        }
        EXPECT_EQ(0u, t.repairs);
    }
}

TEST(Calls, of_unknown_functions_are_function_0)
{
    Recording r;
    r.tape().enter(FUNCTIONS, 1).enter(KPTI_MAX_NUMBER, 2).exit(KPTI_MAX_NUMBER, 3);
    r.tape().exit(FUNCTIONS, 4);
    const Taken t = take_checked(r);
    EXPECT_EQ("f0[2-3] f0[1-4]", t.text());
    EXPECT_EQ(0u, t.repairs);
}

TEST(Gc, is_a_call)
{
    Recording r;
    r.tape().enter(1, 1).gc_begin(2, 3).enter(2, 4).exit(2, 5).gc_end(7, 8, 9).exit(1, 10);
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order += 2) {
        Taking taking;
        taking.order = order;
        const Taken t = take_checked(r, taking);
        const kpt_activity &gc = t.only(FUNCTIONS);
        EXPECT_EQ(KPT_KIND_GC, gc.kind);
        EXPECT_EQ(3, gc.start_ns);
        EXPECT_EQ(9, gc.end_ns);
        EXPECT_EQ(2u, gc.value0);
        EXPECT_EQ(7u, gc.value1);
        EXPECT_EQ(8u, gc.value2);
        EXPECT_EQ(gc.id, t.only(2).parent_id) << "finalizers run inside it";
        EXPECT_EQ("Python GC", std::string(t.names.at(FUNCTIONS).display.data));
        EXPECT_EQ(0u, t.repairs);
    }
}

TEST(Gc, without_an_end)
{
    Recording r;
    r.tape().enter(1, 1).gc_begin(0, 3).enter(2, 4).gc_begin(1, 5).gc_end(1, 1, 6).exit(1, 10);
    const Taken t = take_checked(r);
    EXPECT_EQ("f2[4-5]R gc0[3-5]R gc1[5-6] f1[1-10]", t.text());
    EXPECT_EQ(2u, t.repairs);
}

TEST(Gc, without_a_begin)
{
    Recording r;
    r.tape().enter(6, 1).gc_end(1, 1, 6).exit(6, 10); // 6 is a generation as well as a function
    const Taken t = take_checked(r);
    EXPECT_EQ("f6[1-10]", t.text());
    EXPECT_EQ(1u, t.repairs);
}

TEST(Gc, is_closed_by_an_exit_around_it)
{
    Recording r;
    r.tape().enter(1, 1).gc_begin(0, 3).exit(1, 4).gc_end(0, 0, 5).gc_begin(1, 6).gc_end(0, 0, 7);
    const Taken t = take_checked(r);
    EXPECT_EQ("gc0[3-4]R f1[1-4] gc1[6-7]", t.text());
    EXPECT_EQ(2u, t.repairs);
}

TEST(Repair, an_enter_without_exit)
{
    Recording r;
    r.tape().enter(1, 1).enter(2, 2).enter(3, 3).exit(1, 9);
    const Taken t = take_checked(r);
    EXPECT_EQ("f3[3-9]R f2[2-9]R f1[1-9]", t.text());
    EXPECT_EQ(2u, t.repairs);
}

TEST(Repair, an_exit_without_enter)
{
    Recording r;
    r.tape().exit(5, 1).enter(1, 2).exit(5, 3).exit(1, 4).exit(1, 5);
    const Taken t = take_checked(r);
    EXPECT_EQ("f1[2-4]", t.text());
    EXPECT_EQ(3u, t.repairs);
}

// CPython 3.13 reports CALL, but no C_RETURN, for a star-call of a bound C method.
TEST(Repair, star_calls_in_a_loop)
{
    Recording r;
    r.tape().enter(1, 0);
    for (uint64_t i = 0; i < 100; i++)
        r.tape().enter(2, 10 * i + 1).enter(3, 10 * i + 2).exit(2, 10 * i + 5);
    r.tape().exit(1, 2000);
    const Taken t = take_checked(r);
    EXPECT_EQ(201u, t.activities.size());
    EXPECT_EQ(100u, t.repairs);
}

TEST(Repair, ticks_that_go_backwards)
{
    Recording r;
    r.tape().enter(1, 100).enter(2, 90).exit(2, 95).exit(1, 110);
    const Taken t = take_checked(r);
    EXPECT_EQ("f2[100-100] f1[100-110]", t.text());
    EXPECT_EQ(2u, t.repairs);
}

TEST(Repair, an_exit_that_is_late_and_further_down_counts_both)
{
    Recording r;
    r.tape().enter(1, 100).enter(2, 110).exit(1, 105);
    const Taken t = take_checked(r);
    EXPECT_EQ("f2[110-110]R f1[100-110]", t.text());
    EXPECT_EQ(2u, t.repairs);
}

// Exits without enters at the bottom of a deep stack must not walk it each time.
TEST(Repair, many_exits_without_enters_on_a_deep_stack_take_linear_time)
{
    Recording r;
    constexpr uint32_t depth = 300000;
    for (uint32_t i = 0; i < depth; i++)
        r.tape().enter(1, i);
    for (uint32_t i = 0; i < depth; i++)
        r.tape().exit(2 + i % 30, depth + i);
    r.stop(3 * depth);
    const Taken t = take_checked(r);
    EXPECT_EQ(depth, t.activities.size());
    EXPECT_EQ(depth, t.repairs);
}

// A failed search is cached, but calls that began since then are searched.
TEST(Repair, an_exit_is_found_after_one_in_vain)
{
    Recording r;
    r.tape().enter(1, 1).exit(2, 2).enter(2, 3).enter(4, 4).exit(2, 5).exit(2, 6).exit(1, 7);
    const Taken t = take_checked(r);
    EXPECT_EQ("f4[4-5]R f2[3-5] f1[1-7]", t.text());
    EXPECT_EQ(3u, t.repairs);
}

TEST(Stack, a_million_deep)
{
    Recording r;
    constexpr uint32_t depth = 1000000;
    for (uint32_t i = 0; i < depth; i++)
        r.tape().enter(1 + i % 7, i);
    for (uint32_t i = depth; i-- > 0;)
        r.tape().exit(1 + i % 7, 2 * depth - i);
    r.stop(3 * depth);
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order += 2) {
        Taking taking;
        taking.order = order;
        const Taken t = take(r, taking);
        ASSERT_EQ(depth, t.activities.size());
        EXPECT_EQ(0u, t.repairs);
        const kpt_activity &deepest = t.activities[order == KPT_ORDER_THREAD ? 0 : depth - 1];
        EXPECT_EQ(depth - 1, deepest.depth);
        EXPECT_EQ(depth, deepest.id);
        EXPECT_EQ(depth - 1, deepest.parent_id);
    }
}

} // namespace
