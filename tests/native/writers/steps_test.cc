/* steps_test.cc: the steps of a program, found in its recording. */
#include "writers/operators/step_finder.h"

#include <gtest/gtest.h>

#include "tests/fixtures/batches/batches.h"
#include "tests/fixtures/failing_heap.h"
#include "tests/fixtures/mock_host/mock_host.h"

namespace
{

/* A step as a test expects it. */
struct wanted {
    int64_t start_ns;
    int64_t end_ns;
    uint64_t number;
    std::string name;
    uint32_t flags;
    bool operator==(const wanted &other) const
    {
        return std::tie(start_ns, end_ns, number, name, flags) ==
               std::tie(other.start_ns, other.end_ns, other.number, other.name, other.flags);
    }
};

void PrintTo(const wanted &step, std::ostream *out)
{
    *out << step.name << " " << step.number << ": " << step.start_ns << " to " << step.end_ns
         << " flags " << step.flags;
}

class Steps : public testing::Test
{
  protected:
    Steps()
    {
        main = t.thread("Main");
    }
    ~Steps() override
    {
        kpti_notes_free(&notes);
    }
    void range(const std::string &name, int64_t start_ns, int64_t end_ns, uint32_t thread = 0)
    {
        t.begin_range(thread, t.name(name), ++ranges, start_ns);
        t.end_range(thread, ranges, end_ns);
    }
    uint32_t note(uint32_t what, const std::string &name, uint32_t partner = 0)
    {
        kpti_note n = {};
        n.what = what;
        n.partner = partner;
        n.name = {name.data(), name.size()};
        return kpti_notes_add(&notes, &n);
    }
    void span(const std::string &name, int64_t start_ns, int64_t end_ns)
    {
        const uint32_t begin = note(KPTI_NOTE_BEGIN, name);
        t.point(main, begin, start_ns);
        t.point(main, note(KPTI_NOTE_END, name, begin), end_ns);
    }
    std::vector<wanted> found()
    {
        kpti_step_finder finder;
        parcel delivered = t.delivery(KPT_ORDER_TIME);
        std::vector<wanted> all;
        uint32_t count;
        kpti_step_finder_init(&finder, &heap, &notes);
        EXPECT_EQ(kpti_step_finder_batch(&finder, delivered.batch()), KPT_OK);
        const kpti_step *steps = kpti_step_finder_steps(&finder, &count);
        for (uint32_t i = 0; i < count; i++) {
            char buffer[KPTI_MAX_STEP_NAME];
            const kpt_str name = kpti_step_finder_name(&finder, &steps[i], buffer);
            all.push_back({steps[i].start_ns,
                           steps[i].end_ns,
                           steps[i].number,
                           {name.data, static_cast<size_t>(name.size)},
                           steps[i].flags});
        }
        EXPECT_EQ(kpti_step_finder_steps(&finder, &count), steps) << "a second time";
        EXPECT_EQ(count, all.size());
        kpti_step_finder_free(&finder);
        return all;
    }

    tape t;
    kpti_heap heap = {};
    kpti_notes notes = {};
    uint32_t main = 0;
    uint64_t ranges = 0;
};

using List = std::vector<wanted>;
enum { BEFORE = KPT_ACTIVITY_BEGAN_BEFORE, STOPPED = KPT_ACTIVITY_ENDED_BY_STOP };

TEST_F(Steps, AProgramWithoutAnyHasNone)
{
    EXPECT_EQ(found(), List());
    t.enter(main, t.name("step"), 100); /* a function */
    t.leave(main, 200);
    t.enter_operator(main, t.name("ProfilerStep#1"), 300); /* an operator */
    t.leave(main, 400);
    EXPECT_EQ(found(), List());
}

TEST_F(Steps, AreTheAnnotationsOfTheProfiler)
{
    range("ProfilerStep#7", 100, 200);
    range("ProfilerStep#8", 200, 350);
    EXPECT_EQ(found(),
              (List{{100, 200, 7, "ProfilerStep#7", 0}, {200, 350, 8, "ProfilerStep#8", 0}}));
}

/* The program runs in a span of its own, which ends after the profiler's next step has begun. */
TEST_F(Steps, OfTheProfilerMayCrossSpansAndCalls)
{
    const uint32_t begin = note(KPTI_NOTE_BEGIN, "loop");
    t.point(main, begin, 100);
    t.begin_range(main, t.name("ProfilerStep#0"), 1, 150);
    t.point(main, note(KPTI_NOTE_END, "loop", begin), 180);
    t.end_range(main, 1, 300);
    EXPECT_EQ(found(), (List{{150, 300, 0, "ProfilerStep#0", 0}}));
}

TEST_F(Steps, NamesThatOnlyResembleOnesOfTheProfilerAreNone)
{
    for (const char *name :
         {"ProfilerStep#", "ProfilerStep", "ProfilerStep#x", "ProfilerStep#1x", "ProfilerStep#-1",
          "ProfilerStep# 1", "profilerstep#1", " ProfilerStep#1",
          "ProfilerStep#1234567890123456789", "ProfilerStep*", "Optimizer.step#",
          "Optimizer.zero_grad#SGD.zero_grad", "", "step", "\xff\xfe"})
        range(name, 100, 200);
    range(std::string("ProfilerStep#1\0", 15), 100, 200);
    EXPECT_EQ(found(), List());
}

TEST_F(Steps, AreTheSpansNamedStep)
{
    span("steps", 0, 10);
    span("step", 100, 200);
    span("Step", 210, 220);
    span("step", 300, 350);
    EXPECT_EQ(found(), (List{{100, 200, 0, "step", 0}, {300, 350, 1, "step", 0}}));
}

TEST_F(Steps, ASpanThatDidNotEndEndsWithTheRecording)
{
    span("step", 100, 200);
    t.point(main, note(KPTI_NOTE_BEGIN, "step"), 300);
    t.enter(main, t.name("f"), 310);
    t.leave(main, 900);
    EXPECT_EQ(found(), (List{{100, 200, 0, "step", 0}, {300, 900, 1, "step", STOPPED}}));
}

TEST_F(Steps, ASpanWhoseBeginIsLostIsNone)
{
    t.point(main, note(KPTI_NOTE_END, "step", 7), 300); /* no such note */
    t.point(main, note(KPTI_NOTE_END, "step", 1), 300); /* an end */
    t.point(main, note(KPTI_NOTE_END, "step", note(KPTI_NOTE_BEGIN, "step")), 400); /* no point */
    t.point(main, 99, 500);
    EXPECT_EQ(found(), List());
}

TEST_F(Steps, LastFromOneEndOfAnOptimizerToTheNext)
{
    t.enter(main, t.name("setup"), 50);
    t.leave(main, 90);
    range("Optimizer.step#SGD.step", 150, 200);
    range("Optimizer.step#SGD.step", 270, 300); /* the same text under another number */
    range("Optimizer.step#SGD.step", 420, 450);
    EXPECT_EQ(found(), (List{{50, 200, 0, "Optimizer.step#SGD.step", BEFORE},
                             {200, 300, 1, "Optimizer.step#SGD.step", 0},
                             {300, 450, 2, "Optimizer.step#SGD.step", 0}}));
}

TEST_F(Steps, OneOptimizerIsTheClock)
{
    const uint32_t other = t.thread("Other");
    range("Optimizer.step#A.step", 100, 110);
    range("Optimizer.step#B.step", 120, 130);
    range("Optimizer.step#B.step", 220, 230);
    range("Optimizer.step#A.step", 300, 310);
    range("Optimizer.step#B.step", 400, 410, other); /* the same on another thread is another one */
    EXPECT_EQ(found(), (List{{100, 110, 0, "Optimizer.step#A.step", BEFORE},
                             {110, 310, 1, "Optimizer.step#A.step", 0}}))
        << "of two with as many steps, the first";
    range("Optimizer.step#B.step", 500, 510);
    ASSERT_EQ(found().size(), 3u);
    EXPECT_EQ(found()[0].name, "Optimizer.step#B.step") << "the one with the most steps";
    EXPECT_EQ(found()[0].start_ns, 100) << "the thread's first activity";
}

TEST_F(Steps, BetterSourcesReplaceWorse)
{
    range("Optimizer.step#A.step", 100, 110);
    range("Optimizer.step#A.step", 200, 210);
    EXPECT_EQ(found().size(), 2u);
    span("step", 300, 350);
    EXPECT_EQ(found(), (List{{300, 350, 0, "step", 0}}));
    range("ProfilerStep#3", 400, 450);
    EXPECT_EQ(found(), (List{{400, 450, 3, "ProfilerStep#3", 0}}));
}

TEST_F(Steps, InsideOthersAreNotCounted)
{
    const uint32_t outer = note(KPTI_NOTE_BEGIN, "step");
    t.point(main, outer, 100);
    span("step", 120, 130);
    span("step", 140, 150);
    t.point(main, note(KPTI_NOTE_END, "step", outer), 200);
    EXPECT_EQ(found(), (List{{100, 200, 0, "step", 0}}));
}

TEST_F(Steps, OfAnOptimizerInsideItselfCountOnce)
{
    t.begin_range(main, t.name("Optimizer.step#A.step"), 77, 100);
    range("Optimizer.step#A.step", 110, 120);
    t.end_range(main, 77, 130);
    range("Optimizer.step#A.step", 200, 210);
    EXPECT_EQ(found(), (List{{100, 130, 0, "Optimizer.step#A.step", BEFORE},
                             {130, 210, 1, "Optimizer.step#A.step", 0}}));
}

TEST_F(Steps, OfSeveralThreadsAreInTheOrderOfTheirStart)
{
    const uint32_t other = t.thread("Other");
    range("ProfilerStep#0", 100, 200);
    range("ProfilerStep#1", 200, 300);
    range("ProfilerStep#0", 150, 260, other);
    EXPECT_EQ(found(), (List{{100, 200, 0, "ProfilerStep#0", 0},
                             {150, 260, 0, "ProfilerStep#0", 0},
                             {200, 300, 1, "ProfilerStep#1", 0}}));
}

TEST_F(Steps, OfNonsenseDoNoHarm)
{
    kpti_step_finder finder;
    uint32_t count;
    parcel p;
    p.order = KPT_ORDER_TIME;
    p.name(3, "ProfilerStep#5").name(4, "Optimizer.step#X");
    (void)note(KPTI_NOTE_BEGIN, "step");
    for (uint16_t kind :
         {KPT_KIND_RANGE_END, KPT_KIND_POINT, KPT_KIND_RANGE_BEGIN, KPT_KIND_RANGE_BEGIN,
          KPT_KIND_POINT, KPT_KIND_RANGE_END, KPT_KIND_RANGE_END, KPT_KIND_RANGE_END})
        for (uint32_t name : {3u, 4u, 5u, UINT32_MAX}) {
            kpt_activity a = parcel::plain(5, 9, 100, -100);
            a.kind = kind;
            a.value0 = kind == KPT_KIND_POINT ? 1 : UINT64_MAX;
            a.name = name;
            a.thread = 7;
            p.call(a);
        }
    kpti_step_finder_init(&finder, &heap, &notes);
    EXPECT_EQ(kpti_step_finder_batch(&finder, p.batch()), KPT_OK);
    p.order = KPT_ORDER_THREAD;
    EXPECT_EQ(kpti_step_finder_batch(&finder, p.batch()), KPT_E_UNSUPPORTED);
    EXPECT_EQ(kpti_step_finder_batch(&finder, nullptr), KPT_E_SIZE);
    parcel far;
    far.order = KPT_ORDER_TIME;
    kpt_activity a = parcel::plain(1, 0, 0, 0);
    a.thread = UINT32_MAX;
    far.call(a);
    EXPECT_EQ(kpti_step_finder_batch(&finder, far.batch()), KPT_E_LIMIT);
    parcel far_name;
    far_name.order = KPT_ORDER_TIME;
    far_name.name(UINT32_MAX, "ProfilerStep#5");
    EXPECT_EQ(kpti_step_finder_batch(&finder, far_name.batch()), KPT_E_LIMIT);
    (void)kpti_step_finder_steps(&finder, &count);
    EXPECT_EQ(count, 1u);
    kpti_step_finder_free(&finder);
}

TEST_F(Steps, EveryAllocationMayFail)
{
    for (int64_t i = 0; i < 200; i++) {
        const std::string number = std::to_string(i % 70);
        range("ProfilerStep#" + number, 100 * i, 100 * i + 50);
        range("Optimizer.step#" + number, 100 * i + 50, 100 * i + 60);
        span("step", 100 * i + 60, 100 * i + 70);
    }
    parcel delivered = t.delivery(KPT_ORDER_TIME);
    const uint64_t failures = fail_each_allocation([&](const kpti_heap &failing) {
        kpti_step_finder finder;
        uint32_t count;
        kpti_step_finder_init(&finder, &failing, &notes);
        const kpt_status status = kpti_step_finder_batch(&finder, delivered.batch());
        (void)kpti_step_finder_steps(&finder, &count);
        EXPECT_TRUE(status != KPT_OK || count == 200u) << count;
        kpti_step_finder_free(&finder);
        return status;
    });
    EXPECT_GE(failures, 19U);
}

/* Memory grows with the steps, and not with what is between them. */
TEST_F(Steps, TakeNoMemoryForOtherActivities)
{
    auto host = std::make_unique<mock_host>();
    mock_host_init(host.get(), "test");
    heap = {host.get(), host->table.alloc, host->table.dealloc};
    tape many = tape::random(3, 1, 50000);
    const uint32_t other = many.name("something");
    for (uint32_t i = 0; i < 20000; i++) {
        many.begin_range(0, other, i, INT64_C(1) << 40);
        many.end_range(0, i, INT64_C(1) << 40);
    }
    parcel delivered = many.delivery(KPT_ORDER_TIME);
    kpti_step_finder finder;
    kpti_step_finder_init(&finder, &heap, &notes);
    EXPECT_EQ(kpti_step_finder_batch(&finder, delivered.batch()), KPT_OK);
    EXPECT_LE(host->live_blocks, 1u) << "the threads";
    kpti_step_finder_free(&finder);
    EXPECT_EQ(host->live_blocks, 0u);
}

} // namespace
