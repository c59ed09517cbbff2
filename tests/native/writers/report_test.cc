/* report_test.cc: the data of a report; its page is tested in a browser (tests/report). */
#include "tests/fixtures/batches/writing.h"

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

/* A thread's events are written in blocks: none is lost, and none is written twice. */
TEST_F(Report, ManyCallsGoOutInBlocks)
{
    tape t = tape::random(7, 3, 40000);
    EXPECT_EQ(report(t).calls, t.expected());
}

} // namespace
