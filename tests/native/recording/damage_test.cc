// damage_test.cc: chunks that no tracer would write, as from a damaged file.
#include <gtest/gtest.h>

#include "tests/native/recording/delivered.h"
#include "tests/native/recording/random_program.h"

namespace
{

TEST(Damage, inputs_of_nothing)
{
    Recording r;
    r.tape().chunk(5).raw(KPTI_EVENT_INPUTS, 5, 900).enter(1, 10).exit(1, 20);
    const Taken t = take_checked(r);
    EXPECT_EQ("f1[10-20]", t.text());
    EXPECT_EQ(1u, t.repairs);
}

TEST(Damage, a_second_word_that_is_missing)
{
    for (uint32_t kind : {KPTI_EVENT_EPOCH, KPTI_EVENT_WATCH, KPTI_EVENT_GC_END, KPTI_EVENT_WIDE}) {
        Recording r;
        r.tape().enter(1, 10).raw(kind, 1, 15).chunk(16).exit(1, 20);
        const Taken t = take_checked(r);
        EXPECT_EQ("f1[10-20]", t.text());
        EXPECT_EQ(1u, t.repairs) << kind;
    }
}

TEST(Damage, a_second_word_that_is_missing_behind_an_open)
{
    Recording r;
    r.tape().chunk(5).open(1).raw(KPTI_EVENT_WATCH, 1, 5);
    const Taken t = take_checked(r);
    EXPECT_EQ("f1[0-1000000]BS", t.text());
    EXPECT_EQ(1u, t.repairs);
}

TEST(Damage, details_of_nothing)
{
    Recording r;
    r.tape().chunk(5).line(3).watch(1, 2).enter(1, 10).exit(1, 20).line(4).watch(3, 4);
    const Taken t = take_checked(r);
    EXPECT_EQ("f1[10-20]", t.text());
    EXPECT_EQ(10u, t.only(1).line);
    EXPECT_EQ(4u, t.repairs);
}

TEST(Damage, an_open_in_the_middle)
{
    Recording r;
    r.tape().enter(1, 10).open(2).line(5).exit(2, 15).exit(1, 20);
    const Taken t = take_checked(r);
    EXPECT_EQ("f1[10-20]", t.text());
    EXPECT_EQ(3u, t.repairs) << "the open, its line and its exit";
}

TEST(Damage, an_epoch_far_ahead)
{
    Recording r;
    r.stop(100).tape().enter(1, 10).raw(KPTI_EVENT_EPOCH, 0, 0).word(UINT64_MAX).exit(1, 20);
    r.tape().enter(2, 30).exit(2, 40);
    EXPECT_EQ("f1[10-100] f2[100-100]", take_checked(r).text());
}

TEST(Damage, a_run_that_ends_before_it_begins)
{
    Recording r;
    r.stop(50).add_run(200, 20).add_run(10, 300);
    r.tape().enter(1, 10).run(1, 203).enter(2, 210).exit(2, 220).run(2, 230).enter(3, 240);
    EXPECT_EQ("f1[10-50]S f2[200-200] f3[240-300]S", take_checked(r).text());
}

// Found by the fuzzer: events followed the calls that the end of the last run had closed at the delivery's
// end.
TEST(Damage, a_run_behind_the_last)
{
    Recording r;
    r.stop(50).add_run(100, 150);
    r.tape().run(1, 103).enter(1, 110).run(0, 120).enter(2, 120).exit(2, 130);
    Taking taking;
    taking.end_ns = 1000;
    for (taking.order = KPT_ORDER_THREAD; taking.order <= KPT_ORDER_START; taking.order++)
        EXPECT_EQ(150, take_checked(r, taking).only(1).end_ns);
}

TEST(Damage, a_converter_that_goes_backwards)
{
    Taking taking;
    taking.convert = [](void *, const uint64_t *ticks, int64_t *ns, uint64_t count) {
        for (uint64_t i = 0; i < count; i++)
            ns[i] = ticks[i] % 7 ? 1000 - static_cast<int64_t>(ticks[i]) : INT64_MIN;
    };
    for (uint32_t seed = 0; seed < 20; seed++) {
        Recording r;
        write_random_program(&r, seed, {});
        for (taking.order = KPT_ORDER_THREAD; taking.order <= KPT_ORDER_START; taking.order++)
            (void)take_checked(r, taking);
    }
}

// A converter with another result at each call must not break any order.
TEST(Damage, a_converter_that_changes_its_mind)
{
    Taking taking;
    taking.convert = [](void *, const uint64_t *ticks, int64_t *ns, uint64_t count) {
        static int64_t shift;
        shift += 17;
        for (uint64_t i = 0; i < count; i++)
            ns[i] = static_cast<int64_t>(ticks[i]) + shift;
    };
    for (uint32_t seed = 0; seed < 20; seed++) {
        Recording r;
        write_random_program(&r, seed, {});
        for (taking.order = KPT_ORDER_THREAD; taking.order <= KPT_ORDER_TIME; taking.order++)
            (void)take_checked(r, taking);
    }
}

TEST(Damage, nothing_but_noise)
{
    for (uint32_t seed = 0; seed < 200; seed++) {
        std::mt19937_64 random(seed);
        Recording r;
        r.add_run(random(), random());
        for (size_t i = 0; i < 300; i++) {
            if (i % 40 == 0) {
                r.tape(i % 3).chunk(random());
                r.tape(i % 3).head().run = static_cast<uint32_t>(random() % 3);
            }
            r.tape(i % 3).word(i % 2 ? random() : random() & ~(UINT64_C(0xFFFFFFC8) << 32));
        }
        Taking taking;
        for (taking.order = KPT_ORDER_THREAD; taking.order <= KPT_ORDER_START; taking.order++)
            (void)take_checked(r, taking);
    }
}

} // namespace
