/* operator_formats_test.cc: the host's operators and ranges in every format. */
#include "tests/fixtures/batches/writing.h"

namespace
{

class OperatorFormats : public Writing
{
  protected:
    ~OperatorFormats() override
    {
        kpti_operator_walk_free(&walk);
    }
    void walk_of(tape &t)
    {
        const kpti_heap heap = {};
        delivered = t.delivery(KPT_ORDER_TIME);
        kpti_operator_walk_free(&walk);
        kpti_operator_walk_init(&walk, &heap, nullptr, nullptr);
        ASSERT_EQ(kpti_operator_walk_batch(&walk, delivered.batch()), KPT_OK);
        options.operators = &walk;
    }
    /* Ranges as every format should have them. */
    void expect_ranges(tape &t, const std::vector<seen> &ranges)
    {
        std::vector<seen> all = t.expected();
        all.insert(all.end(), ranges.begin(), ranges.end());
        std::sort(all.begin(), all.end());
        EXPECT_EQ(chrome_calls(chrome(t), "user_annotation"), ranges);
        EXPECT_EQ(chrome_calls(chrome(t), "python_function"), t.expected());
        EXPECT_EQ(result.activities, t.expected().size());
        EXPECT_EQ(perfetto(t).calls, all);
        EXPECT_EQ(speedscope(t), all);
        EXPECT_EQ(report(t).calls, all);
    }

    kpti_operator_walk walk = {};
    parcel delivered{0}; /* the walk borrows its names */
};

TEST_F(OperatorFormats, ARangeIsAFrameAmongTheCalls)
{
    tape t;
    uint32_t f = t.name("f"), g = t.name("g"), step = t.name("step"), main = t.thread("Main");
    t.enter(main, f, 1000);
    t.begin_range(main, step, 7, 2000);
    t.enter(main, g, 3000);
    t.leave(main, 4000);
    t.end_range(main, 7, 5000);
    t.enter(main, g, 6000);
    t.leave(main, 7000);
    t.leave(main, 9000);
    expect_ranges(t, {{tape::FIRST_TID, "step", 2000, 5000}});
    EXPECT_EQ(collapsed(t)["Main;f;step;g"], 1u);
    EXPECT_EQ(collapsed(t)["Main;f;g"], 1u);
}

TEST_F(OperatorFormats, AnInnerRangeThatCrossesEndsWithTheOuterOne)
{
    tape t;
    uint32_t a = t.name("a"), b = t.name("b"), f = t.name("f"), main = t.thread("Main");
    t.begin_range(main, a, 1, 1000);
    t.begin_range(main, b, 2, 2000);
    t.enter(main, f, 2500);
    t.leave(main, 2600);
    t.end_range(main, 1, 3000);
    t.end_range(main, 2, 4000); /* not open any more */
    t.end_range(main, 3, 4000); /* never begun */
    expect_ranges(t, {{tape::FIRST_TID, "a", 1000, 3000}, {tape::FIRST_TID, "b", 2000, 3000}});
}

TEST_F(OperatorFormats, ARangeThatCrossesASpanOfTheUserEndsWithIt)
{
    tape t;
    uint32_t f = t.name("f"), range = t.name("range"), main = t.thread("Main");
    const uint32_t begin = note(KPTI_NOTE_BEGIN, "span", 2000);
    const uint32_t end = note(KPTI_NOTE_END, "span", 4000, begin);
    t.enter(main, f, 1000);
    t.point(main, begin, 2000);
    t.begin_range(main, range, 1, 3000);
    t.point(main, end, 4000);
    t.end_range(main, 1, 5000);
    t.leave(main, 9000);
    std::vector<seen> expected = {{tape::FIRST_TID, "f", 1000, 9000},
                                  {tape::FIRST_TID, "span", 2000, 4000},
                                  {tape::FIRST_TID, "range", 3000, 4000}};
    EXPECT_EQ(speedscope(t), expected);
    expected.erase(expected.begin() + 1); /* no call for the reader of Perfetto's */
    EXPECT_EQ(perfetto(t).calls, expected);
}

/* The span's end is inside a call, or the span is no frame of this thread: the range lasts. */
TEST_F(OperatorFormats, ARangeOutlastsASpanThatDoesNotEndBesideIt)
{
    for (bool is_of_another_thread : {false, true}) {
        tape t;
        uint32_t f = t.name("f"), helper = t.name("helper"), range = t.name("range"),
                 main = t.thread("Main"), other = t.thread("Other");
        const uint32_t at = is_of_another_thread ? other : main;
        const uint32_t begin = note(KPTI_NOTE_BEGIN, "span", 2000, 0, 0, at);
        const uint32_t own = note(KPTI_NOTE_BEGIN, "own", 2500);
        const uint32_t end = note(KPTI_NOTE_END, "span", 4000, begin);
        const uint32_t own_end = note(KPTI_NOTE_END, "own", 6000, own);
        t.enter(main, f, 1000);
        t.point(at, begin, 2000);
        t.point(main, own, 2500);
        t.begin_range(main, range, 1, 3000);
        if (!is_of_another_thread) t.enter(main, helper, 3500);
        t.point(main, end, 4000);
        if (!is_of_another_thread) t.leave(main, 4500);
        t.end_range(main, 1, 5000);
        t.point(main, own_end, 6000);
        t.leave(main, 9000);
        const seen wanted = {tape::FIRST_TID, "range", 3000, 5000};
        const std::vector<seen> calls = perfetto(t).calls;
        EXPECT_EQ(std::count(calls.begin(), calls.end(), wanted), 1) << is_of_another_thread;
        const std::vector<seen> annotations = chrome_calls(chrome(t), "user_annotation");
        EXPECT_EQ(std::count(annotations.begin(), annotations.end(), wanted), 1);
        kpti_notes_free(&notes);
        notes = {};
    }
}

TEST_F(OperatorFormats, ASpanOfTheUserThatCrossesARangeIsLoose)
{
    tape t;
    uint32_t f = t.name("f"), range = t.name("range"), main = t.thread("Main");
    const uint32_t begin = note(KPTI_NOTE_BEGIN, "span", 3000);
    const uint32_t end = note(KPTI_NOTE_END, "span", 6000, begin);
    t.enter(main, f, 1000);
    t.begin_range(main, range, 1, 2000);
    t.point(main, begin, 3000);
    t.end_range(main, 1, 4000);
    t.point(main, end, 6000);
    t.leave(main, 9000);
    std::vector<seen> calls = speedscope(t);
    EXPECT_NE(std::find(calls.begin(), calls.end(), seen{tape::FIRST_TID, "range", 2000, 4000}),
              calls.end());
    EXPECT_NE(std::find(calls.begin(), calls.end(), seen{tape::FIRST_TID, "f", 1000, 9000}),
              calls.end());
}

TEST_F(OperatorFormats, ChromeHasTheFieldsOfKineto)
{
    tape t;
    uint32_t f = t.name("model.py(3): forward", "model.py", 3), op = t.name("aten::mul"),
             node = t.name("MulBackward0"), main = t.thread("Main"), engine = t.thread("autograd");
    t.enter(main, f, 1000);
    t.enter_operator(main, op, 1100, 8).value2 = 77;
    t.leave(main, 1200);
    t.leave(main, 2000);
    t.enter_operator(engine, node, 3000, 8, tape::host_number(main));
    t.leave(engine, 3500);
    t.enter_operator(engine, node, 4000, 9, tape::host_number(main)); /* its forward is lost */
    t.leave(engine, 4500);
    walk_of(t);
    const json trace = chrome(t);
    std::vector<json> ops, arrows;
    for (const json &e : trace["traceEvents"].items) {
        if (e["ph"].text != "M" && e["cat"].text == "cpu_op") ops.push_back(e);
        if (e["ph"].text != "M" && e["cat"].text == "fwdbwd") arrows.push_back(e);
    }
    ASSERT_EQ(ops.size(), 3u);
    EXPECT_EQ(ops[0]["args"]["Sequence number"].text, "7");
    EXPECT_EQ(ops[0]["args"]["Fwd thread id"].text, "0");
    EXPECT_EQ(ops[0]["args"]["Record function id"].text, "77");
    EXPECT_FALSE(ops[0]["args"].has("forward at"));
    EXPECT_EQ(ops[1]["args"]["Fwd thread id"].text, "1");
    EXPECT_EQ(ops[1]["args"]["forward at"].text, "model.py(3): forward");
    EXPECT_EQ(ops[2]["args"]["forward at"].text, "(not recorded)");
    ASSERT_EQ(arrows.size(), 2u);
    EXPECT_EQ(arrows[0]["ph"].text, "s");
    EXPECT_EQ(arrows[0]["tid"].text, std::to_string(tape::FIRST_TID));
    EXPECT_EQ(arrows[0]["ts"].text, "0.600"); /* since base_ns */
    EXPECT_EQ(arrows[1]["ph"].text, "f");
    EXPECT_EQ(arrows[1]["tid"].text, std::to_string(tape::FIRST_TID + 1));
    EXPECT_EQ(arrows[1]["ts"].text, "2.500");
    EXPECT_EQ(arrows[0]["id"].text, arrows[1]["id"].text);
}

} // namespace
