/* chrome_json_test.cc: the trace file: its fields are Kineto's (T10 and T34 of the reference), it is strict
 * JSON for all names, and records of older and newer plugins are read correctly. */
#include "writers/chrome/chrome_json.h"
#include "writers/writer.h"

#include <unistd.h>

#include "tests/fixtures/batches/parcel.h"
#include "tests/fixtures/readers/strict_json.h"
#include "tests/fixtures/scratch.h"

namespace
{

class ChromeJson : public Scratch
{
  protected:
    ChromeJson()
    {
        options.pid = 42;
        options.version = kpt_str_of("9.8.7");
    }

    void open(const std::string &name = "t.json")
    {
        ASSERT_EQ(
            kpti_writer_open(&kpti_format_chrome, path(name).c_str(), &options, &writer, &result),
            KPT_OK)
            << result.text;
    }
    void deliver(parcel &p)
    {
        ASSERT_EQ(kpti_writer_batch(writer, p.batch()), KPT_OK);
    }
    /* Closes it, and reads the file. */
    void finish(const kpt_stats *stats = nullptr)
    {
        ASSERT_EQ(kpti_writer_close(writer, KPT_OK, stats, &result), KPT_OK) << result.text;
        ASSERT_NO_THROW(trace = read_json(content("t.json"))) << content("t.json");
    }
    void write(parcel &p)
    {
        open();
        deliver(p);
        finish();
    }

    /* The events of a phase. */
    std::vector<json> events(const std::string &phase) const
    {
        std::vector<json> found;
        for (const json &event : trace["traceEvents"].items)
            if (event["ph"].text == phase) found.push_back(event);
        return found;
    }
    /* The metadata of that name, in order. */
    std::vector<json> metadata(const std::string &name) const
    {
        std::vector<json> found;
        for (const json &event : events("M"))
            if (event["name"].text == name) found.push_back(event);
        return found;
    }

    kpti_writer_options options = {};
    kpti_writer_result result = {};
    kpti_writer *writer = nullptr;
    json trace;
};

parcel small()
{
    parcel p;
    p.name(0, "basic.py(8): inner", 8).thread(0, 77, "MainThread");
    return p;
}

TEST_F(ChromeJson, AnActivityIsWrittenAsKinetoDoes)
{
    parcel p = small();
    options.base_ns = 1000000;
    p.call(parcel::plain(31, 2, 1159001, 1162005)).call(parcel::plain(1, 0, 1000000, 2000000));
    write(p);
    EXPECT_NE(content("t.json").find(
                  R"({"ph":"X","cat":"python_function","name":"basic.py(8): inner","pid":42,)"
                  R"("tid":77,"ts":159.001,"dur":3.004,"args":{"Python parent id":2,)"
                  R"("Python id":31,"Ev Idx":0}})"),
              std::string::npos)
        << content("t.json");
    json root = events("X").at(1);
    EXPECT_EQ(root["args"]["Python parent id"].is, json::NOTHING);
    EXPECT_TRUE(root["args"].has("Python parent id"));
    EXPECT_EQ(root["args"]["Ev Idx"].text, "1");
    EXPECT_EQ(root["ts"].text, "0.000");
    EXPECT_EQ(root["dur"].text, "1000.000");
    EXPECT_EQ(root["args"].members.size(), 3u) << "flags are there only where they are set";
}

TEST_F(ChromeJson, ACompactCallHasNoIdsAndAShortName)
{
    parcel p;
    const std::string odd = "q\"uote/x.py(1): f";
    p.name(0, "/usr/lib/json/encoder.py(8): encode", 8, "/usr/lib/json/encoder.py");
    p.name(1, "encoder.py(8): encode", 8, "encoder.py").name(2, "<built-in method len>");
    p.name(3, "a/b.py(8): f", 8, "a/b.py").name(4, odd).name(5, "other", 8, "/x/y/z.py");
    p.thread(0, 77, "MainThread");
    options.base_ns = 1000000;
    options.is_compact = 1;
    p.call(parcel::plain(31, 2, 1159001, 1162005));
    for (uint32_t name = 1; name <= 5; name++) {
        kpt_activity a = parcel::plain(name, 0, 1000000, 2000000);
        a.name = name;
        if (name == 3) a.flags = KPT_ACTIVITY_BEGAN_BEFORE;
        p.call(a);
    }
    write(p);
    EXPECT_NE(content("t.json").find(",\n{\"ph\":\"X\",\"name\":\"json/encoder.py(8): encode\","
                                     "\"pid\":42,\"tid\":77,\"ts\":159.001,\"dur\":3.004}"),
              std::string::npos)
        << content("t.json");
    const char *const names[] = {"encoder.py(8): encode", "<built-in method len>", "a/b.py(8): f",
                                 odd.c_str(), "other"};
    for (size_t i = 0; i < 5; i++)
        EXPECT_EQ(events("X").at(i + 1)["name"].text, names[i]);
    EXPECT_FALSE(events("X").at(1).has("args"));
    EXPECT_EQ(events("X").at(3)["args"].members.size(), 1u);
    EXPECT_EQ(events("X").at(3)["args"]["began before"].text, "true");
}

TEST_F(ChromeJson, HeadAndTailTellWhatTheTraceIs)
{
    parcel p = small();
    kpt_stats stats;
    KPT_INIT(&stats);
    stats.events = 1234;
    stats.events_dropped = 5;
    stats.events_repaired = 6;
    stats.threads_unreached = 7;
    options.base_ns = 1700000000000000000;
    options.trace_name = kpt_str_of("a \"trace\"");
    options.process_name = kpt_str_of("server");
    open();
    p.call(parcel::plain(1, 0, 1700000000000000000, 1700000000000000001));
    deliver(p);
    finish(&stats);
    EXPECT_EQ(trace["schemaVersion"].text, "1");
    EXPECT_EQ(trace["displayTimeUnit"].text, "ms");
    EXPECT_EQ(trace["with_stack"].text, "1");
    EXPECT_EQ(trace["baseTimeNanoseconds"].text, "1700000000000000000");
    EXPECT_EQ(trace["kpytrace"]["version"].text, "9.8.7");
    EXPECT_EQ(trace["traceName"].text, "a \"trace\"");
    EXPECT_EQ(trace["otherData"]["calls"].text, "1");
    EXPECT_EQ(trace["otherData"]["events"].text, "1234");
    EXPECT_EQ(trace["otherData"]["events dropped"].text, "5");
    EXPECT_EQ(trace["otherData"]["events repaired"].text, "6");
    EXPECT_EQ(trace["otherData"]["threads unreached"].text, "7");
    EXPECT_EQ(metadata("process_name").at(0)["args"]["name"].text, "server");
    EXPECT_EQ(events("X").at(0)["dur"].text, "0.001") << "a nanosecond survives";
}

TEST_F(ChromeJson, AnEmptyTraceIsATraceToo)
{
    options.pid = 0;
    open();
    finish();
    EXPECT_EQ(events("X").size(), 0u);
    EXPECT_EQ(metadata("process_name").size(), 1u);
    EXPECT_EQ(metadata("process_name")[0]["pid"].text, std::to_string(getpid()));
    EXPECT_EQ(metadata("process_name")[0]["args"]["name"].text, "python");
    EXPECT_EQ(trace["traceName"].text, path("t.json"));
    EXPECT_EQ(result.activities, 0u);
    EXPECT_EQ(result.bytes, content("t.json").size());
}

TEST_F(ChromeJson, ThreadsHaveNamesAndAnOrder)
{
    parcel p;
    p.name(0, "f").thread(0, 100, "MainThread").thread(1, 90, "").thread(2, 0, "lost \"one\"");
    for (uint32_t i = 0; i < 3; i++) {
        kpt_activity a = parcel::plain(i + 1, 0, 10, 20);
        a.thread = i;
        p.call(a);
    }
    write(p);
    auto names = metadata("thread_name");
    auto order = metadata("thread_sort_index");
    ASSERT_EQ(names.size(), 3u);
    ASSERT_EQ(order.size(), 3u);
    EXPECT_EQ(names[0]["args"]["name"].text, "MainThread");
    EXPECT_EQ(names[1]["args"]["name"].text, "thread 90");
    EXPECT_EQ(names[2]["args"]["name"].text, "lost \"one\"");
    for (size_t i = 0; i < 3; i++) {
        EXPECT_EQ(order[i]["args"]["sort_index"].text, std::to_string(i));
        EXPECT_EQ(order[i]["tid"].text, names[i]["tid"].text);
        EXPECT_EQ(events("X").at(i)["tid"].text, names[i]["tid"].text);
        EXPECT_EQ(names[i]["pid"].text, "42");
    }
    EXPECT_NE(names[2]["tid"].text, "0") << "T27: threads without a tid must not fall together";
    EXPECT_EQ(result.threads, 3u);
}

TEST_F(ChromeJson, FlagsAndLinesStandInTheArguments)
{
    struct {
        uint32_t flag;
        const char *key;
    } rows[] = {
        {KPT_ACTIVITY_BEGAN_BEFORE, "began before"},
        {KPT_ACTIVITY_ENDED_BY_STOP, "ended by stop"},
        {KPT_ACTIVITY_CLAMPED, "clamped"},
        {KPT_ACTIVITY_RECOVERED, "recovered"},
    };
    parcel p = small();
    for (const auto &row : rows) {
        kpt_activity a = parcel::plain(1, 0, 10, 20);
        a.flags = row.flag;
        p.call(a);
    }
    kpt_activity resumed = parcel::plain(1, 0, 10, 20);
    resumed.line = 12;
    resumed.flags = KPT_ACTIVITY_BEGAN_BEFORE | KPT_ACTIVITY_ENDED_BY_STOP;
    kpt_activity fresh = parcel::plain(1, 0, 10, 20);
    fresh.line = 8;
    p.call(resumed).call(fresh);
    write(p);
    auto calls = events("X");
    for (size_t i = 0; i < 4; i++) {
        EXPECT_EQ(calls.at(i)["args"][rows[i].key].text, "true");
        EXPECT_EQ(calls[i]["args"].members.size(), 4u);
    }
    EXPECT_EQ(calls.at(4)["args"]["line"].text, "12");
    EXPECT_EQ(calls[4]["args"].members.size(), 6u);
    EXPECT_FALSE(calls.at(5)["args"].has("line")) << "the name has it";
}

TEST_F(ChromeJson, CollectionsAreEventsOfTheirOwn)
{
    parcel p;
    p.name(3, "Python GC").thread(0, 1, "");
    kpt_activity gc = parcel::plain(5, 4, 1000, 3000);
    gc.kind = KPT_KIND_GC;
    gc.name = 3;
    gc.value0 = 2;
    gc.value1 = 100;
    gc.value2 = 1;
    p.call(gc);
    write(p);
    json event = events("X").at(0);
    EXPECT_EQ(event["name"].text, "Python GC");
    EXPECT_EQ(event["cat"].text, "python_function");
    EXPECT_EQ(event["args"]["generation"].text, "2");
    EXPECT_EQ(event["args"]["collected"].text, "100");
    EXPECT_EQ(event["args"]["uncollectable"].text, "1");
    EXPECT_EQ(event["args"]["Python parent id"].text, "4");
}

TEST_F(ChromeJson, NamesOfAnyBytesStayReadable)
{
    std::vector<std::string> names = {"",
                                      "q\"uote\\back/slash",
                                      "tab\tnew\nline\rnul" + std::string(1, '\0') + "esc\x1b",
                                      "größe 名前 𝒻",
                                      "bad \xff\xc3 bytes \xed\xa0\x80",
                                      "cut \xe2\x82",
                                      "</script>",
                                      std::string(100000, 'x')};
    parcel p;
    p.thread(0, 1, "thread \xff\"\n");
    for (uint32_t i = 0; i < names.size(); i++) {
        kpt_activity a = parcel::plain(i + 1, 0, 1, 2);
        a.name = i;
        p.name(i, names[i]).call(a);
    }
    write(p);
    auto calls = events("X");
    for (size_t i = 0; i < 4; i++)
        EXPECT_EQ(calls.at(i)["name"].text, names[i]);
    EXPECT_EQ(calls.at(4)["name"].text, "bad \uFFFD\uFFFD bytes \uFFFD\uFFFD\uFFFD");
    EXPECT_EQ(calls.at(5)["name"].text, "cut \uFFFD");
    EXPECT_EQ(calls.at(6)["name"].text, names[6]);
    EXPECT_EQ(calls.at(7)["name"].text, std::string(16384, 'x')) << "cut where nobody reads on";
    EXPECT_EQ(metadata("thread_name").at(0)["args"]["name"].text, "thread \uFFFD\"\n");
}

TEST_F(ChromeJson, TheWorstNamesFillTheBufferAndNoMore)
{
    parcel p;
    p.name(0, std::string(20000, '\x01')).name(1, std::string(20000, '\xff')).thread(0, 1, "");
    for (uint32_t i = 0; i < 12; i++) {
        kpt_activity a = parcel::plain(UINT64_MAX - i, UINT64_MAX, INT64_MIN, INT64_MAX);
        a.name = i % 2;
        a.kind = KPT_KIND_GC;
        a.value0 = a.value1 = a.value2 = UINT64_MAX;
        a.flags = UINT32_MAX;
        a.line = UINT32_MAX;
        p.call(a);
    }
    options.base_ns = INT64_MAX;
    write(p);
    EXPECT_EQ(events("X").size(), 12u);
    EXPECT_EQ(events("X").at(0)["name"].text, std::string(16384, '\x01'));
    EXPECT_EQ(events("X").at(0)["ts"].text, "-18446744073709551.615");
}

TEST_F(ChromeJson, RecordsOfANewerPluginAreReadByTheirStride)
{
    std::string first;
    for (uint32_t extra : {0u, 8u, 64u, 1000u}) {
        parcel p(extra);
        p.name(1, "two").name(0, "one").thread(1, 11, "T1").thread(0, 10, "T0");
        for (uint32_t i = 0; i < 5; i++) {
            kpt_activity a = parcel::plain(i + 1, i, i * 100, i * 100 + 50);
            a.name = a.thread = i % 2;
            p.call(a);
        }
        write(p);
        if (first.empty()) first = content("t.json");
        EXPECT_EQ(content("t.json"), first) << extra;
        EXPECT_EQ(events("X").size(), 5u);
    }
}

TEST_F(ChromeJson, NamesAndThreadsComeInAnyBatchAndAnyNumber)
{
    parcel names, more, calls, none;
    names.name(100000, "far").thread(5000, 55, "T");
    more.name(7, "near");
    open();
    deliver(none);
    deliver(names);
    deliver(more);
    for (uint32_t name : {100000u, 7u}) {
        kpt_activity a = parcel::plain(1, 0, 1, 2);
        a.name = name;
        a.thread = 5000;
        calls.call(a);
    }
    deliver(calls);
    finish();
    EXPECT_EQ(events("X").at(0)["name"].text, "far");
    EXPECT_EQ(events("X").at(1)["name"].text, "near");
    EXPECT_EQ(events("X").at(1)["tid"].text, "55");
    EXPECT_EQ(result.names, 2u);
    EXPECT_EQ(result.threads, 1u);
    EXPECT_EQ(result.activities, 2u);
}

TEST_F(ChromeJson, WhatNeverCameIsUnknownAndNoCrash)
{
    parcel p;
    kpt_activity a = parcel::plain(1, 0, 1, 2);
    a.name = UINT32_MAX;
    a.thread = 12;
    p.call(a);
    write(p);
    EXPECT_EQ(events("X").at(0)["name"].text, "unknown");
    EXPECT_EQ(events("X").at(0)["tid"].text, "0");
}

TEST_F(ChromeJson, ManyCallsAreAllThere)
{
    parcel p = small();
    for (uint64_t i = 1; i <= 100; i++)
        p.call(parcel::plain(i, i - 1, static_cast<int64_t>(i), static_cast<int64_t>(i * 1000)));
    open();
    for (int i = 0; i < 50; i++)
        deliver(p);
    finish();
    auto calls = events("X");
    ASSERT_EQ(calls.size(), 5000u);
    EXPECT_GT(result.bytes, static_cast<uint64_t>(KPTI_OUT_BUFFER_BYTES));
    for (size_t i = 0; i < calls.size(); i += 77)
        EXPECT_EQ(calls[i]["args"]["Ev Idx"].text, std::to_string(i));
}

} // namespace
