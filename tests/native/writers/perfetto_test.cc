/* perfetto_test.cc: the fields of the Perfetto trace other than names and times, and its size. */
#include "tests/fixtures/batches/writing.h"

namespace
{

using Perfetto = Writing;

TEST_F(Perfetto, ACallTakesLessThanThirtyBytes)
{
    const int64_t CALLS = 100000, NAMES = 1000;
    tape t;
    uint32_t thread = t.thread("T");
    for (int64_t i = 0; i < NAMES; i++)
        t.name("file.py(1): function_" + std::to_string(i), "/some/file.py", 1);
    size_t names_only = write(kpti_format_perfetto, t).size();
    for (int64_t i = 0; i < NAMES; i++) {
        t.enter(thread, static_cast<uint32_t>(i), i * 2000);
        t.leave(thread, i * 2000 + 1000);
    }
    size_t few = write(kpti_format_perfetto, t).size();
    for (int64_t i = NAMES; i < NAMES + CALLS; i++) {
        t.enter(thread, static_cast<uint32_t>(i % NAMES), i * 2000);
        t.leave(thread, i * 2000 + 1000);
    }
    size_t many = write(kpti_format_perfetto, t).size();
    EXPECT_LT(names_only, few) << "names stand where they are first used";
    EXPECT_LE(static_cast<double>(many - few) / static_cast<double>(CALLS), 30.0);
}

TEST_F(Perfetto, ThreadsAndProcessHaveNames)
{
    tape t = tape::random(1, 3, 5);
    options.process_name = {"server", 6};
    perfetto_trace trace = perfetto(t);
    EXPECT_EQ(trace.process, "server");
    EXPECT_EQ(trace.threads, (std::vector<std::string>{"Thread-0", "Thread-1", "Thread-2"}));
}

TEST_F(Perfetto, PythonFunctionsHaveTheirSource)
{
    tape t;
    uint32_t python = t.name("a.py(8): f", "/x/a.py", 8), builtin = t.name("<built-in len>");
    uint32_t thread = t.thread("T");
    for (uint32_t name : {python, builtin}) {
        t.enter(thread, name, 1000);
        t.leave(thread, 1000);
    }
    std::map<std::string, std::string> expected = {{"a.py(8): f", "/x/a.py:8"}};
    EXPECT_EQ(perfetto(t).sources, expected);
}

TEST_F(Perfetto, FlagsLinesAndCollectionsAreAnnotations)
{
    using args = std::map<std::string, std::string>;
    tape t;
    uint32_t thread = t.thread("T");
    uint32_t names[] = {t.name("began", "f", 3), t.name("ended", "f", 3), t.name("gc"),
                        t.name("plain", "f", 3)};
    t.enter(thread, names[0], 1000).flags = KPT_ACTIVITY_BEGAN_BEFORE;
    t.calls.back().line = 12;
    t.enter(thread, names[1], 2000).line = 3;
    kpt_activity &gc = t.enter(thread, names[2], 3000);
    gc.kind = KPT_KIND_GC;
    gc.value0 = 2;
    gc.value1 = 100;
    gc.value2 = 1;
    t.leave(thread, 4000);
    t.enter(thread, names[3], 5000).flags = KPT_ACTIVITY_MARKED;
    t.leave(thread, 6000);
    t.leave(thread, 7000,
            KPT_ACTIVITY_ENDED_BY_STOP | KPT_ACTIVITY_CLAMPED | KPT_ACTIVITY_RECOVERED);
    t.leave(thread, 8000);
    std::map<std::string, args> expected = {
        {"began", {{"began before", "true"}, {"line", "12"}}},
        {"ended", {{"ended by stop", "true"}, {"clamped", "true"}, {"recovered", "true"}}},
        {"gc", {{"generation", "2"}, {"collected", "100"}, {"uncollectable", "1"}}},
    };
    EXPECT_EQ(perfetto(t).call_args, expected);
}

TEST_F(Perfetto, ATimeBeforeTheBaseIsAUnixTime)
{
    tape t;
    uint32_t f = t.name("f"), thread = t.thread("T");
    options.base_ns = 5000;
    t.enter(thread, f, 1000);
    t.leave(thread, 9000);
    t.enter(thread, f, 9000);
    t.leave(thread, 9500);
    EXPECT_EQ(perfetto(t).calls, t.expected());
}

TEST_F(Perfetto, ManyThreadsAndNamesAreToldApart)
{
    tape t;
    for (int i = 0; i < 300; i++)
        t.name("f" + std::to_string(i));
    for (uint32_t i = 0; i < 300; i++) {
        t.thread("T" + std::to_string(i));
        for (uint32_t k = 0; k < 3; k++) {
            t.enter(i, (i * 7 + k * 100) % 300, 1000 + k * 100);
            t.leave(i, 1050 + k * 100);
        }
    }
    EXPECT_EQ(perfetto(t).calls, t.expected());
}

} // namespace
