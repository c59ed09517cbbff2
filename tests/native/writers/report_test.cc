/* report_test.cc: the data of a report; its page is tested in a browser (tests/report). */
#include "tests/fixtures/batches/writing.h"
#include "tests/fixtures/failing_heap.h"

namespace
{

using Report = Writing;

TEST_F(Report, SaysWhatItIsOf)
{
    tape t;
    options.process_name = kpt_str{"a \"program\"", 11};
    options.trace_name = kpt_str{"out.html", 8};
    options.version = kpt_str{"1.2.3", 5};
    t.name("f", "/some/file.py", 12);
    uint32_t main = t.thread("Main");
    t.enter(main, 0, 1000);
    t.leave(main, 4000);
    report_trace trace = report(t);
    EXPECT_EQ(trace.text["process"].text, "a \"program\"");
    EXPECT_EQ(trace.text["pid"].text, "42");
    EXPECT_EQ(trace.text["name"].text, "out.html");
    EXPECT_EQ(trace.text["version"].text, "1.2.3");
    EXPECT_EQ(trace.text["first_ns"].text, "1000");
    EXPECT_EQ(trace.text["end"].text, "3000");
    EXPECT_EQ(trace.text["stats"]["calls"].text, "1");
    ASSERT_EQ(trace.text["names"].items.size(), 1u);
    EXPECT_EQ(trace.text["names"].items[0].items[2].text, "/some/file.py");
    EXPECT_EQ(trace.text["names"].items[0].items[3].text, "12");
    EXPECT_EQ(trace.calls, t.expected());
}

TEST_F(Report, CountersOfTheTracerAreThere)
{
    parcel p;
    kpti_writer *writer = nullptr;
    kpt_stats stats;
    KPT_INIT(&stats);
    stats.events_dropped = 7;
    ASSERT_EQ(
        kpti_writer_open(&kpti_format_report, path("t.html").c_str(), &options, &writer, &result),
        KPT_OK);
    ASSERT_EQ(kpti_writer_close(writer, KPT_OK, &stats, &result), KPT_OK);
    EXPECT_EQ(report_trace(content("t.html")).text["stats"]["events dropped"].text, "7");
}

TEST_F(Report, NoNameEndsTheElementThatItIsIn)
{
    tape t;
    t.name("</script><script>alert(1)</script>", "</script>", 1);
    uint32_t main = t.thread("</script>");
    t.enter(main, 0, 1000);
    t.point(main, note(KPTI_NOTE_MARK, "</script>", 1500, 0, 0, 0, "\"x\":\"</script>\""), 1500);
    t.leave(main, 2000);
    std::string html = write(kpti_format_report, t);
    EXPECT_EQ(html.find("alert(1)"), std::string::npos);
    EXPECT_EQ(report_trace(html).calls, t.expected());
}

/* Fields that few calls have. */
TEST_F(Report, FlagsLinesAndCollectionsAreThere)
{
    tape t;
    uint32_t f = t.name("f", "f.py", 3), g = t.name("g", "f.py", 9), gc = t.name("Python GC");
    uint32_t main = t.thread("Main");
    t.enter(main, f, 1000).flags = KPT_ACTIVITY_BEGAN_BEFORE;
    kpt_activity &resumed = t.enter(main, g, 1100);
    resumed.line = 11;
    t.leave(main, 1200, KPT_ACTIVITY_CLAMPED | KPT_ACTIVITY_MARKED);
    kpt_activity &collection = t.enter(main, gc, 1300);
    collection.kind = KPT_KIND_GC;
    collection.value0 = 2;
    collection.value1 = 1000000;
    collection.value2 = 3;
    t.leave(main, 1400);
    t.leave(main, 2000, KPT_ACTIVITY_ENDED_BY_STOP);
    report_trace trace = report(t);
    EXPECT_EQ(trace.calls, t.expected());
    EXPECT_EQ(trace.more["f"].flags, 3u);
    EXPECT_EQ(trace.more["f"].line, 0u);
    EXPECT_EQ(trace.more["g"].flags, 4u);
    EXPECT_EQ(trace.more["g"].line, 11u);
    EXPECT_EQ(trace.more["Python GC"].collection, (std::vector<uint64_t>{2, 1000000, 3}));
}

TEST_F(Report, MarksCountersAndSpansAreAmongTheCalls)
{
    tape t;
    uint32_t f = t.name("f"), main = t.thread("Main");
    t.enter(main, f, 1000);
    uint32_t begin = note(KPTI_NOTE_BEGIN, "part", 1100, 0, 0, 0, "\"k\":\"v\"");
    t.point(main, begin, 1100);
    t.point(main, note(KPTI_NOTE_MARK, "mark", 1200), 1200);
    t.point(main, note(KPTI_NOTE_COUNTER, "queue", 1300), 1300);
    t.point(main, note(KPTI_NOTE_END, "", 1400, begin), 1400);
    uint32_t never = note(KPTI_NOTE_BEGIN, "never ended", 1500);
    t.point(main, never, 1500);
    t.leave(main, 2000, KPT_ACTIVITY_ENDED_BY_STOP);
    report_trace trace = report(t);
    EXPECT_EQ(trace.calls, t.expected());
    std::vector<seen> spans = {{100, "part", 1100, 1400}, {100, "never ended", 1500, 2000}};
    EXPECT_EQ(trace.spans, spans);
    ASSERT_EQ(trace.marks.size(), 1u);
    EXPECT_EQ(trace.marks[0].ns, 1200);
    ASSERT_EQ(trace.values.size(), 1u);
    EXPECT_EQ(trace.values[0].name, "queue");
    EXPECT_EQ(trace.text["notes"].items[0].items[2].text, "\"k\":\"v\"");
    EXPECT_EQ(trace.text["notes"].items[2].items[3].text, "2.5");
    EXPECT_TRUE(trace.text["loose"].items.empty()) << "all of them nest";
}

/* A span that another thread ends, a span whose begin is lost, and notes that were never delivered. */
TEST_F(Report, WhatDoesNotNestStandsBesideTheCalls)
{
    tape t;
    uint32_t f = t.name("f"), main = t.thread("Main"), other = t.thread("Other");
    t.enter(main, f, 1000);
    uint32_t begin = note(KPTI_NOTE_BEGIN, "handed over", 1100);
    t.point(main, begin, 1100);
    t.leave(main, 2000);
    t.enter(other, f, 1200);
    t.point(other, note(KPTI_NOTE_END, "", 1500, begin, 0, other), 1500);
    t.leave(other, 3000);
    (void)note(KPTI_NOTE_MARK, "unseen", 900);
    report_trace trace = report(t);
    EXPECT_TRUE(trace.spans.empty());
    ASSERT_EQ(trace.text["loose"].items.size(), 2u);
    std::vector<std::string> fields;
    for (const json &field : trace.text["loose"].items[0].items)
        fields.push_back(field.text);
    EXPECT_EQ(fields, (std::vector<std::string>{"1", "2", "100", "500", "100", "101", "0"}));
    EXPECT_EQ(trace.text["loose"].items[1].items[2].text, "-100");
}

/* The resume is written once, as a call; a point of another call, or within a resume of the same task,
 * begins none. */
TEST_F(Report, ResumesOfTasksAreCalls)
{
    tape t;
    uint32_t f = t.name("f"), main = t.thread("Main");
    uint32_t first = note(KPTI_NOTE_TASK, "Task-1", 900, 0, 0, 0, "handle"),
             second = note(KPTI_NOTE_TASK, "Task-2", 900, 0, 0, 0, "serve");
    t.enter(main, f, 1000);
    t.enter(main, f, 1100);
    t.point(main, first, 1100);
    t.enter(main, f, 1150);
    t.point(main, first, 1150);
    t.leave(main, 1160);
    t.leave(main, 1200);
    t.enter(main, f, 1300);
    t.point(main, second, 1300);
    t.leave(main, 1400);
    t.point(main, second, 1450);
    t.enter(main, f, 1500);
    t.point(main, first, 1500);
    t.leave(main, 1600);
    t.leave(main, 2000);
    report_trace trace = report(t);
    EXPECT_EQ(trace.calls, t.expected());
    std::vector<std::pair<std::string, int64_t>> found;
    for (const report_note &resume : trace.resumes)
        found.emplace_back(resume.name, resume.ns);
    EXPECT_EQ(found, (std::vector<std::pair<std::string, int64_t>>{
                         {"Task-1", 1100}, {"Task-2", 1300}, {"Task-1", 1500}}));
    EXPECT_EQ(trace.text["notes"].items[0].items[2].text, "handle");
    EXPECT_TRUE(trace.text["loose"].items.empty());
}

std::vector<std::string> texts_of(const json &list)
{
    std::vector<std::string> texts;
    for (const json &item : list.items)
        texts.push_back(item.text);
    return texts;
}

TEST_F(Report, NamesOfOperatorsAndAnnotationsAreToldApart)
{
    tape t;
    uint32_t f = t.name("f"), op = t.name("aten::mul"), user = t.name("mine"),
             detach = t.name("detach"), main = t.thread("Main");
    t.begin_range(main, user, 1, 1000);
    t.enter(main, f, 1100);
    t.enter_operator(main, op, 1200);
    t.leave(main, 1300);
    t.leave(main, 1400);
    t.end_range(main, 1, 1500);
    t.begin_range(main, detach, 2, 1600); /* an operator that the host names by a text */
    t.calls.back().value1 = KPT_SCOPE_FUNCTION;
    t.end_range(main, 2, 1700);
    report_trace trace = report(t);
    EXPECT_EQ(texts_of(trace.text["operators"]), (std::vector<std::string>{"1", "3"}));
    EXPECT_EQ(texts_of(trace.text["annotations"]), (std::vector<std::string>{"2"}));
    EXPECT_TRUE(trace.text["forwards"].items.empty());
}

TEST_F(Report, ATraceWithoutOperatorsAndStepsSaysNothingAboutThem)
{
    tape t = tape::random(1, 2, 40);
    report_trace trace = report(t);
    for (const char *member : {"operators", "annotations", "forwards", "steps"})
        EXPECT_FALSE(trace.text.has(member)) << member;
}

TEST_F(Report, BackwardWorkHasTheFunctionOfItsForwardOperator)
{
    const kpti_heap heap = {};
    tape t;
    uint32_t f = t.name("train.py(12): \"loss\"", "train.py", 12), op = t.name("aten::mul"),
             node = t.name("MulBackward0"), lost = t.name("LostBackward0"), main = t.thread("Main"),
             engine = t.thread("autograd");
    t.enter(main, f, 1000);
    t.enter_operator(main, op, 1100, 8);
    t.leave(main, 1200);
    t.leave(main, 2000);
    t.enter_operator(engine, node, 3000, 8, tape::host_number(main));
    t.leave(engine, 3500);
    t.enter_operator(engine, node, 3600, 8, tape::host_number(main));
    t.leave(engine, 3700);
    t.enter_operator(engine, lost, 4000, 9, tape::host_number(main));
    t.leave(engine, 4500);
    parcel delivered = t.delivery(KPT_ORDER_TIME);
    kpti_operator_walk walk;
    kpti_operator_walk_init(&walk, &heap, nullptr, nullptr);
    ASSERT_EQ(kpti_operator_walk_batch(&walk, delivered.batch()), KPT_OK);
    options.operators = &walk;
    report_trace trace = report(t);
    kpti_operator_walk_free(&walk);
    EXPECT_EQ(trace.calls, t.expected());
    EXPECT_EQ(texts_of(trace.text["forwards"]),
              (std::vector<std::string>{"train.py(12): \"loss\""}));
    EXPECT_EQ(trace.more["MulBackward0"].forward, "train.py(12): \"loss\"");
    EXPECT_EQ(trace.more["LostBackward0"].forward, "(not recorded)");
    EXPECT_EQ(trace.more.count("aten::mul"), 0u);
}

TEST_F(Report, EveryAllocationForOperatorsAndStepsMayFail)
{
    const kpti_heap plain = {};
    tape t;
    uint32_t main = t.thread("Main");
    for (uint32_t i = 0; i < 100; i++) {
        const int64_t ns = 1000 * (i + 1);
        t.begin_range(main, t.name("ProfilerStep#" + std::to_string(i)), i, ns);
        t.enter(main, t.name("f" + std::to_string(i), "f.py", i + 1), ns + 100);
        t.enter_operator(main, t.name("op" + std::to_string(i)), ns + 200, i + 1);
        t.leave(main, ns + 300);
        t.leave(main, ns + 400);
        t.enter_operator(main, t.name("node" + std::to_string(i)), ns + 500, i + 1,
                         tape::host_number(main));
        t.leave(main, ns + 600);
        t.end_range(main, i, ns + 700);
    }
    parcel delivered = t.delivery(KPT_ORDER_TIME);
    kpti_operator_walk walk;
    kpti_operator_walk_init(&walk, &plain, nullptr, nullptr);
    ASSERT_EQ(kpti_operator_walk_batch(&walk, delivered.batch()), KPT_OK);
    options.operators = &walk;
    const uint64_t failures = fail_each_allocation([&](const kpti_heap &heap) {
        kpti_writer *writer = nullptr;
        options.heap = heap;
        const kpt_status status = kpti_writer_open(&kpti_format_report, path("t.html").c_str(),
                                                   &options, &writer, &result);
        if (status != KPT_OK) return status;
        return kpti_writer_close(writer, kpti_writer_batch(writer, delivered.batch()), nullptr,
                                 &result);
    });
    kpti_operator_walk_free(&walk);
    EXPECT_GE(failures, 14U);
    report_trace trace(content("t.html"));
    EXPECT_EQ(trace.text["steps"].items.size(), 100u);
    EXPECT_EQ(trace.text["forwards"].items.size(), 100u);
    EXPECT_EQ(trace.more["node99"].forward, "f99");
}

TEST_F(Report, StepsAreThere)
{
    tape t;
    uint32_t f = t.name("f"), main = t.thread("Main");
    t.enter(main, f, 1000);
    for (uint64_t i = 0; i < 3; i++) {
        t.begin_range(main, t.name("ProfilerStep#" + std::to_string(7 + i)), i,
                      1100 + 100 * static_cast<int64_t>(i));
        t.end_range(main, i, 1200 + 100 * static_cast<int64_t>(i));
    }
    t.leave(main, 2000);
    const std::vector<json> steps = report(t).text["steps"].items;
    ASSERT_EQ(steps.size(), 3u);
    EXPECT_EQ(texts_of(steps[1]),
              (std::vector<std::string>{"200", "300", "8", "ProfilerStep#8", "0", "0"}));
}

/* The parts of a call that was cut are flagged, so that the page counts the call once. */
TEST_F(Report, FurtherPartsOfACallAreFlagged)
{
    tape t;
    uint32_t f = t.name("f"), g = t.name("g"), main = t.thread("Main");
    t.enter(main, f, 1000);
    t.leave(main, 1100);
    t.enter(main, g, 1100).flags = KPT_ACTIVITY_CONTINUED;
    t.leave(main, 1200);
    report_trace trace = report(t);
    EXPECT_EQ(trace.more["g"].flags, static_cast<uint64_t>(KPT_ACTIVITY_CONTINUED));
    EXPECT_EQ(trace.more.count("f"), 0u);
}

/* A thread's events are written in blocks: none is lost, and none is written twice. */
TEST_F(Report, ManyCallsGoOutInBlocks)
{
    tape t = tape::random(7, 3, 40000);
    EXPECT_EQ(report(t).calls, t.expected());
}

} // namespace
