/* splice_test.cc: calls are inserted into a trace of Kineto; other files stay unchanged. */
#include <gtest/gtest.h>

#include "tests/fixtures/batches/kineto_text.h"
#include "tests/fixtures/batches/parcel.h"
#include "tests/fixtures/readers/strict_json.h"
#include "tests/fixtures/scratch.h"
#include "writers/kineto/kineto_splice.h"

namespace
{

std::string event(const std::string &name, const std::string &args)
{
    return "  {\n    \"ph\": \"X\", \"name\": \"" + name + "\", \"args\": {\n" + args +
           "\n}\n  },\n";
}

class Splice : public Scratch
{
  protected:
    /* Inserts COUNT calls into SOURCE, and writes the result to TARGET. */
    int splice(const std::string &source, const std::string &target, int count, bool keep = true)
    {
        kpti_splice s;
        kpti_fragments tables[2] = {};
        int status = kpti_splice_open(&s, path(source).c_str(), &error);
        if (!status) status = kpti_splice_begin(&s, path(target).c_str(), 0, nullptr, &error);
        if (status) return status;
        EXPECT_EQ(kpti_chrome_add_name(&tables[0], 0, {"f", 1}, 0), KPT_OK);
        EXPECT_EQ(kpti_chrome_add_thread(&tables[1], 0, 7, 8), KPT_OK);
        for (int i = 1; i <= count; i++) {
            kpt_activity a = parcel::plain(static_cast<uint64_t>(i), 0,
                                           1790857026000000000 + i * 1000, 1790857027000000000);
            kpti_chrome_put(&s.events, &a, tables[0].items[0], tables[1].items[0], {nullptr, 0, 0});
        }
        kpti_fragments_free(&tables[0]);
        kpti_fragments_free(&tables[1]);
        return kpti_splice_close(&s, keep, &error);
    }

    kpti_splice_error error = {};
};

TEST_F(Splice, CallsStandBehindTheLastEventInTheFilesOwnTime)
{
    std::string before = kineto(event("op", "\"Ev Idx\": 40") + event("op", "\"Ev Idx\": 41"),
                                "\"ERROR\": [\"a ] }, \\\"Record Window End\\\" \\\\\"],");
    make_file("t.json", before);
    ASSERT_EQ(splice("t.json", "t.json", 2), 0);
    json trace = read_json(content("t.json"));
    const auto &events = trace["traceEvents"].items;
    ASSERT_EQ(events.size(), 5u);
    EXPECT_EQ(events[2]["name"].text, "Record Window End");
    EXPECT_EQ(events[3]["ts"].text, "1.000");
    EXPECT_EQ(events[3]["args"]["Ev Idx"].text, "42");
    EXPECT_EQ(events[4]["args"]["Python id"].text, "2");
    EXPECT_EQ(events[4]["pid"].text, "7");
    EXPECT_EQ(events[4]["tid"].text, "8");
    EXPECT_EQ(trace["traceName"].text, "/tmp/t.json");
    EXPECT_EQ(files(), 1u);
}

/* Issue 23: torch's own test_basic_chrome_trace finds these events by their position from the end. */
TEST_F(Splice, ClosingEventsOfKinetoStayTheLast)
{
    const std::string closing =
        "  {\n    \"ph\": \"X\",\n    \"cat\": \"Trace\",\n    \"name\": \"PyTorch Profiler "
        "(0)\",\n"
        "    \"ts\": 1.5,\n    \"dur\": 2\n    ,\n    \"args\": {\n      \"Op count\": 0\n    }\n  "
        "},\n"
        "  {\n    \"ph\": \"M\", \"name\": \"process_sort_index\", \"args\": {\"sort_index\": 1}\n "
        " },\n"
        "  {\n    \"ph\": \"i\", \"name\": \"Iteration Start: PyTorch Profiler\"\n  },\n";
    make_file("t.json", kineto(event("op", "\"Ev Idx\": 40") + closing));
    ASSERT_EQ(splice("t.json", "t.json", 2), 0);
    json trace = read_json(content("t.json"));
    const auto &events = trace["traceEvents"].items;
    ASSERT_EQ(events.size(), 7u);
    EXPECT_EQ(events[0]["name"].text, "op");
    EXPECT_EQ(events[1]["args"]["Ev Idx"].text, "41");
    EXPECT_EQ(events[2]["args"]["Ev Idx"].text, "42");
    EXPECT_EQ(events[3]["name"].text, "PyTorch Profiler (0)");
    EXPECT_EQ(events[5]["name"].text, "Iteration Start: PyTorch Profiler");
    EXPECT_EQ(events[6]["name"].text, "Record Window End");
}

/* Other events among the closing ones are read like all events before them, for the stacks of kernels. */
TEST_F(Splice, CallsStandBehindTheLastEventWhereOthersAreAmongTheClosingOnes)
{
    const std::string span = "  {\"ph\": \"X\", \"cat\": \"Trace\", \"name\": \"s\"},\n";
    const std::string point = "  {\"ph\": \"i\", \"name\": \"p\"},\n";
    make_file("t.json", kineto(event("op", "\"Ev Idx\": 40") + span + point + point +
                               event("kernel", "\"Ev Idx\": 41")));
    ASSERT_EQ(splice("t.json", "t.json", 1), 0);
    json trace = read_json(content("t.json"));
    const auto &events = trace["traceEvents"].items;
    ASSERT_EQ(events.size(), 7u);
    EXPECT_EQ(events[4]["name"].text, "kernel");
    EXPECT_EQ(events[5]["name"].text, "Record Window End");
    EXPECT_EQ(events[6]["args"]["Ev Idx"].text, "42");
}

/* Text that looks like a closing event and is not: a name with its text, an event that others follow in the
 * same object, and a list without other events. */
TEST_F(Splice, CallsStandBehindTheLastEventWhereNoneClosesTheList)
{
    const std::string name = "a {\\\"cat\\\": \\\"Trace\\\"} b";
    const std::string span = "  {\"ph\": \"X\", \"cat\": \"Trace\", \"name\": \"s\"},\n";
    for (const std::string &before :
         {event(name, "\"Ev Idx\": 1"), span, event("op", "\"a\": {\"cat\": \"Trace\"}")}) {
        make_file("t.json", kineto(before));
        ASSERT_EQ(splice("t.json", "t.json", 1), 0) << before;
        json trace = read_json(content("t.json"));
        const auto &events = trace["traceEvents"].items;
        ASSERT_EQ(events.size(), 3u) << before;
        EXPECT_EQ(events[1]["name"].text, "Record Window End");
        EXPECT_EQ(events[2]["name"].text, "f");
    }
}

TEST_F(Splice, LongHeadsListsAndTailsAreFine)
{
    std::string events;
    for (int i = 0; i < 5000; i++)
        events += event("op", "\"Ev Idx\": " + std::to_string(i));
    for (int i = 0; i < 5000; i++)
        events += event("kernel", "\"no\": 1");
    std::string members = "\"INFO\": [\"" + std::string(200000, ']') + "\"],";
    std::string head = "\"distributedInfo\": {\"a\": [" + std::string(200000, ' ') + "]},";
    make_file("t.json", kineto(events, members, head));
    ASSERT_EQ(splice("t.json", "other.json", 3), 0);
    json trace = read_json(content("other.json"));
    ASSERT_EQ(trace["traceEvents"].items.size(), 10004u);
    EXPECT_EQ(trace["traceEvents"].items[10001]["args"]["Ev Idx"].text, "5000");
    EXPECT_EQ(content("t.json"), kineto(events, members, head)) << "the source is only read";
}

TEST_F(Splice, ACallNamedAsTheLastEventIsNotTakenForIt)
{
    make_file("t.json", kineto(event("Record Window End", "\"Ev Idx\": 1"),
                               "\"ERROR\": [\"Record Window End\"],"));
    ASSERT_EQ(splice("t.json", "t.json", 1), 0);
    EXPECT_EQ(read_json(content("t.json"))["traceEvents"].items.size(), 3u);
}

TEST_F(Splice, WhatIsNoTraceOfKinetoStaysAsItIs)
{
    std::string good = kineto();
    std::string no_base = good;
    no_base.replace(no_base.find("baseTime"), 8, "otherTim");
    std::string no_last = good;
    no_last.replace(no_last.find("Record"), 6, "record");
    const std::string rows[] = {"",
                                "{}",
                                "[]",
                                no_base,
                                no_last,
                                good + "x",
                                good.substr(0, good.size() - 1),
                                good.substr(0, good.size() / 2),
                                kineto("", "\"a\": [1,],"),
                                kineto("", "\"a\": nan,"),
                                kineto("", "\"a\": \"\n\","),
                                kineto("", "", "\"a\": 01\n"),
                                kineto("", "", "a\": 01,\n"),
                                kineto("", "", "\"a\" 01,\n"),
                                kineto("", "", "\"a\": \"b\nc\",\n"),
                                kineto("", "", "\"traceEvents\": [\n")};
    for (const std::string &row : rows) {
        make_file("t.json", row);
        EXPECT_EQ(splice("t.json", "t.json", 1), EBADMSG) << row;
        EXPECT_STRNE(error.text, "");
        EXPECT_EQ(error.of_target, 0);
        EXPECT_EQ(content("t.json"), row);
        EXPECT_EQ(files(), 1u);
    }
    EXPECT_EQ(splice("none", "t.json", 1), ENOENT);
    kpti_splice s;
    EXPECT_EQ(kpti_splice_open(&s, "/dev/null", &error), EBADMSG);
}

struct Line {
    const char *written;
    const char *key;
    const char *text; /* of the value */
};

class Mended : public Splice, public testing::WithParamInterface<Line>
{
};

TEST_P(Mended, ALineThatIsNoJson)
{
    const std::string head = std::string("      \"before\": [\"}\",\n1],\n      ") +
                             GetParam().written + "\n      \"behind\": 2,\n";
    make_file("t.json", kineto(event("op", "\"Ev Idx\": 7"), "", head));
    ASSERT_EQ(splice("t.json", "t.json", 1), 0);
    json trace = read_json(content("t.json"));
    EXPECT_EQ(trace[GetParam().key].text, GetParam().text);
    EXPECT_EQ(trace["before"].items.size(), 2u);
    EXPECT_EQ(trace["behind"].text, "2");
    EXPECT_EQ(trace["traceEvents"].items[2]["args"]["Ev Idx"].text, "8");
}

INSTANTIATE_TEST_SUITE_P(
    Lines, Mended,
    testing::Values(Line{R"("a": "python -c /"1/"",)", "a", R"(python -c "1")"},
                    Line{R"("a": "x//"/"",)", "a", R"(x/"")"},
                    Line{R"("a": "x/", /"b/": /"y",)", "a", R"(x", "b": "y)"},
                    Line{R"("a": "\x",)", "a", R"(\x)"}, Line{R"("a": "\x\"",)", "a", R"(\x")"},
                    Line{"\"a\": \"\t\x01\",", "a", "\t\x01"},
                    Line{"\"a\": \"\"\xc3\xbc\",", "a", "\"\xc3\xbc"},
                    Line{R"("a": {nope,)", "a", "{nope"},
                    Line{R"("a": {"b": 1,)", "a", R"({"b": 1)"},
                    Line{R"("a": [1, [,)", "a", "[1, ["}, Line{R"("a": 01,)", "a", "01"},
                    Line{R"("a": ,)", "a", ""}, Line{R"("a": ",)", "a", "\""},
                    Line{R"("a": "traceEvents": [,)", "a", R"("traceEvents": [)"},
                    Line{R"("a"b": "c",)", R"(a"b)", "c"}, Line{R"("": nan,)", "", "nan"}));

TEST_F(Splice, AnObjectWhoseStringsHaveQuotesIsMended)
{
    make_file("t.json", kineto("", "", "    \"a\": {\"b\": \"c/\"d\", \"e\": [1]},\n"));
    ASSERT_EQ(splice("t.json", "t.json", 1), 0);
    json trace = read_json(content("t.json"));
    EXPECT_EQ(trace["a"]["b"].text, "c\"d");
    EXPECT_EQ(trace["a"]["e"].items.size(), 1u);
}

TEST_F(Splice, AFailureLeavesTheFile)
{
    make_file("t.json", kineto());
    EXPECT_EQ(splice("t.json", "t.json", 1, false), 0);
    EXPECT_EQ(content("t.json"), kineto());
    EXPECT_EQ(splice("t.json", "none/t.json", 1), ENOENT);
    EXPECT_EQ(error.of_target, 1);
    EXPECT_EQ(content("t.json"), kineto());
    EXPECT_EQ(files(), 1u);
}

} // namespace
