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

TEST_F(OperatorFormats, PerfettoHasCategoriesNumbersAndFlows)
{
    using args = std::map<std::string, std::string>;
    tape t;
    uint32_t f = t.name("model.py(3): forward", "model.py", 3), op = t.name("aten::mul"),
             node = t.name("MulBackward0"), engine_op = t.name("evaluate"), lost = t.name("Lost"),
             inner = t.name("aten::neg"), step = t.name("step"), main = t.thread("Main"),
             engine = t.thread("autograd");
    t.begin_range(main, step, 1, 900);
    t.enter(main, f, 1000);
    t.enter_operator(main, op, 1100, 8).value2 = 77;
    t.leave(main, 1200);
    t.leave(main, 2000);
    t.end_range(main, 1, 2100);
    t.enter_operator(engine, engine_op, 2900);
    t.enter_operator(engine, node, 3000, 8, tape::host_number(main));
    t.enter_operator(engine, inner, 3100);
    t.leave(engine, 3200);
    t.leave(engine, 3500);
    t.leave(engine, 3600);
    t.enter_operator(engine, lost, 4000, 9, tape::host_number(main));
    t.leave(engine, 4500);
    t.enter_operator(engine, inner, 5000); /* behind all nodes */
    t.leave(engine, 5500);
    walk_of(t);
    const perfetto_trace trace = perfetto(t);
    std::map<std::string, note_seen> at; /* by name and start */
    for (const note_seen &slice : trace.slices)
        at[slice.name + "@" + std::to_string(slice.start_ns)] = slice;
    ASSERT_EQ(at.size(), 7u);
    for (const auto &entry : at)
        EXPECT_EQ(entry.second.category, entry.first == "step@900" ? "user_annotation" : "cpu_op");
    const args forward = {{"Sequence number", "7"}, {"Record function id", "77"}};
    const args backward = {
        {"Sequence number", "7"}, {"Fwd thread id", "1"}, {"forward at", "model.py(3): forward"}};
    EXPECT_EQ(at["step@900"].args, args{});
    EXPECT_EQ(at["aten::mul@1100"].args, forward);
    EXPECT_EQ(at["MulBackward0@3000"].args, backward);
    EXPECT_EQ(at["evaluate@2900"].args, backward);
    EXPECT_EQ(at["aten::neg@3100"].args, (args{{"forward at", "model.py(3): forward"}}));
    EXPECT_EQ(at["Lost@4000"].args["forward at"], "(not recorded)");
    EXPECT_EQ(at["aten::neg@5000"].args, args{});
    ASSERT_EQ(at["aten::mul@1100"].flows.size(), 1u);
    EXPECT_EQ(at["aten::mul@1100"].flows, at["MulBackward0@3000"].flows);
    for (const auto &entry : at)
        EXPECT_EQ(entry.second.flows.empty(),
                  entry.first != "aten::mul@1100" && entry.first != "MulBackward0@3000");
}

/* The shift of a merged process applies to both ends of a flow. */
TEST_F(OperatorFormats, PerfettoHasTheFlowsOfAShiftedProcess)
{
    const kpti_clock_shift shift = {1000000, 0, 0};
    tape t, shifted;
    for (tape *each : {&t, &shifted}) {
        const int64_t by = each == &shifted ? 1000000 : 0;
        uint32_t op = each->name("op"), node = each->name("node"), main = each->thread("Main");
        each->enter_operator(main, op, 1000 + by, 8);
        each->leave(main, 1100 + by);
        each->enter_operator(main, op, 1200 + by, 9); /* without a node */
        each->leave(main, 1300 + by);
        each->enter_operator(main, node, 2000 + by, 8, tape::host_number(main));
        each->leave(main, 2100 + by);
    }
    walk_of(t);
    walk.shift = &shift;
    const perfetto_trace trace = perfetto(shifted);
    ASSERT_EQ(trace.slices.size(), 3u);
    ASSERT_EQ(trace.slices[0].flows.size(), 1u);
    EXPECT_TRUE(trace.slices[1].flows.empty());
    EXPECT_EQ(trace.slices[0].flows, trace.slices[2].flows);
}

TEST_F(OperatorFormats, PerfettoFlagsTheLaterPartsOfACall)
{
    tape t;
    uint32_t f = t.name("f"), op = t.name("op"), main = t.thread("Main");
    t.enter(main, f, 1000).flags = KPT_ACTIVITY_CONTINUED;
    t.enter_operator(main, op, 1100).flags = KPT_ACTIVITY_CONTINUED;
    t.leave(main, 1200);
    t.leave(main, 2000);
    const perfetto_trace trace = perfetto(t);
    EXPECT_EQ(trace.call_args.at("f").at("continued"), "true");
    EXPECT_EQ(trace.call_args.at("op").at("continued"), "true");
}

/* Half of them have a sequence number. */
TEST_F(OperatorFormats, AnOperatorTakesAboutThirtyFiveBytesInPerfetto)
{
    const int64_t OPERATORS = 10000;
    tape t;
    uint32_t op = t.name("aten::mul"), main = t.thread("Main");
    const size_t empty = write(kpti_format_perfetto, t).size();
    for (int64_t i = 0; i < OPERATORS; i++) {
        t.enter_operator(main, op, i * 2000, i % 2 ? static_cast<uint64_t>(i) : 0);
        t.leave(main, i * 2000 + 1000);
    }
    const size_t full = write(kpti_format_perfetto, t).size();
    EXPECT_LE(static_cast<double>(full - empty) / static_cast<double>(OPERATORS), 35.0);
}

/* Flame graphs have operators and ranges as frames, with the Python functions that they call inside. */
TEST_F(OperatorFormats, OperatorsRangesAndFunctionsNestInFlameGraphs)
{
    tape t;
    uint32_t f = t.name("f"), g = t.name("g"), op = t.name("aten::mul"), step = t.name("step"),
             main = t.thread("Main");
    t.begin_range(main, step, 1, 1000);
    t.enter(main, f, 2000);
    t.enter_operator(main, op, 3000);
    t.enter(main, g, 4000);
    t.enter_operator(main, op, 5000);
    t.leave(main, 6000);
    t.leave(main, 7000);
    t.leave(main, 8000);
    t.leave(main, 9000);
    t.end_range(main, 1, 10000);
    const std::map<std::string, uint64_t> lines = collapsed(t);
    EXPECT_EQ(lines.at("Main;step;f;aten::mul;g;aten::mul"), 1u);
    EXPECT_EQ(lines.at("Main;step;f;aten::mul;g"), 2u);
    EXPECT_EQ(lines.at("Main;step;f;aten::mul"), 2u);
    std::vector<seen> all = t.expected();
    all.insert(all.begin(), {tape::FIRST_TID, "step", 1000, 10000});
    std::sort(all.begin(), all.end());
    EXPECT_EQ(speedscope(t), all);
}

} // namespace
