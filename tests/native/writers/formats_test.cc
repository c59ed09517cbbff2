/* formats_test.cc: every format contains the same calls, whatever their shape. */
#include "tests/fixtures/batches/writing.h"

namespace
{

using Formats = Writing;

/* The readers are slow under a sanitizer, and emulated: a hundred times and more. */
#ifdef KPT_SLOW_READERS
enum { PROGRAMS = 4, ROOTS = 40, THREADS = 1000 };
#else
enum { PROGRAMS = 20, ROOTS = 300, THREADS = 10000 };
#endif

TEST_F(Formats, TheSuffixChooses)
{
    struct {
        const char *path;
        const kpti_format *format;
        int gzip, known;
    } rows[] = {
        {"out.json", &kpti_format_chrome, 0, 1},
        {"out.json.gz", &kpti_format_chrome, 1, 1},
        {"out.pftrace", &kpti_format_perfetto, 0, 1},
        {"out.pftrace.gz", &kpti_format_perfetto, 1, 1},
        {"a.b/out.speedscope.json", &kpti_format_speedscope, 0, 1},
        {"out.speedscope.json.gz", &kpti_format_speedscope, 1, 1},
        {"out.collapsed", &kpti_format_collapsed, 0, 1},
        {"out.collapsed.gz", &kpti_format_collapsed, 1, 1},
        {"out.html", &kpti_format_report, 0, 1},
        {"out.html.gz", &kpti_format_report, 1, 1},
        {"out.txt", &kpti_format_chrome, 0, 0},
        {"out.gz", &kpti_format_chrome, 1, 0},
        {"/dev/stdout", &kpti_format_chrome, 0, 0},
        {"pftrace", &kpti_format_chrome, 0, 0},
        {"", &kpti_format_chrome, 0, 0},
    };
    for (const auto &row : rows) {
        kpti_format_choice choice = kpti_format_of_path(row.path);
        EXPECT_EQ(choice.format, row.format) << row.path;
        EXPECT_EQ(choice.gzip, row.gzip) << row.path;
        EXPECT_EQ(choice.known, row.known) << row.path;
    }
}

TEST_F(Formats, RandomProgramsAreTheSameInAll)
{
    for (uint32_t seed = 1; seed <= PROGRAMS; seed++) {
        tape t = tape::random(seed, 1 + seed % 4, ROOTS);
        EXPECT_EQ(chrome_calls(chrome(t)), t.expected()) << seed;
        EXPECT_EQ(result.activities, t.calls.size());
        EXPECT_EQ(perfetto(t).calls, t.expected()) << seed;
        EXPECT_EQ(result.activities, t.calls.size());
        EXPECT_EQ(speedscope(t), t.expected()) << seed;
        EXPECT_EQ(report(t).calls, t.expected()) << seed;
        EXPECT_EQ(result.names, 20u);
        EXPECT_EQ(result.threads, 1 + seed % 4);
    }
}

TEST_F(Formats, CollapsedStacksHaveTheTimeOfTheirLastFrame)
{
    tape t;
    uint32_t f = t.name("f"), g = t.name("g"), main = t.thread("Main"), other = t.thread("Pool");
    t.thread("Pool");
    for (int64_t i = 0; i < 3; i++) {
        t.enter(main, f, i * 100000);
        t.enter(main, g, i * 100000 + 10000);
        t.enter(main, f, i * 100000 + 30400);
        t.leave(main, i * 100000 + 30500);
        t.leave(main, i * 100000 + 40000);
        t.leave(main, i * 100000 + 50000);
    }
    for (uint32_t thread : {other, other + 1}) {
        t.enter(thread, g, 1000);
        t.leave(thread, 8000);
    }
    std::map<std::string, uint64_t> expected = {{"Main;f", 60},
                                                {"Main;f;g", 90}, /* 89.7 */
                                                {"Pool;g", 14}};
    EXPECT_EQ(collapsed(t), expected) << "what is below half a microsecond is left out";
}

TEST_F(Formats, CollapsedStacksAddUp)
{
    tape t = tape::random(5, 3, 2000);
    uint64_t roots_ns = 0, lines_us = 0;
    auto lines = collapsed(t);
    for (const kpt_activity &a : t.calls)
        if (!a.depth) roots_ns += static_cast<uint64_t>(a.end_ns - a.start_ns);
    for (const auto &line : lines)
        lines_us += line.second;
    EXPECT_NEAR(static_cast<double>(lines_us), static_cast<double>(roots_ns) / 1000,
                static_cast<double>(lines.size()) / 2 + 1);
}

/* So many stacks that those of threads without open calls are written early. */
TEST_F(Formats, CollapsedStacksOfManyThreadsAddUp)
{
    enum { TRACKS = 140000, POOL = 3 };
    tape t;
    std::map<std::string, uint64_t> expected, found;
    const uint32_t f = t.name("f"), g = t.name("g;g"), main = t.thread("Main");
    for (int i = 0; i < POOL; i++)
        t.thread("Pool;");
    t.enter(main, f, 0);
    for (int64_t i = 0; i < TRACKS; i++) {
        const uint32_t own = t.thread("T" + std::to_string(i));
        const uint32_t pooled = 1 + static_cast<uint32_t>(i % POOL);
        const int64_t ns = i * 100000;
        t.enter(own, f, ns);
        t.enter(own, g, ns + 1000);
        t.leave(own, ns + 3000);
        t.leave(own, ns + 4000);
        if (i % 1000) continue;
        t.enter(pooled, g, ns + 1000); /* its track has ended long before */
        t.leave(pooled, ns + 6000);
        t.enter(main, g, ns + 6000);
        t.leave(main, ns + 7000);
    }
    t.leave(main, int64_t{TRACKS} * 100000);
    for (int i = 0; i < TRACKS; i++) {
        expected["T" + std::to_string(i) + ";f"] = 2;
        expected["T" + std::to_string(i) + ";f;g:g"] = 2;
    }
    expected["Pool:;g:g"] = TRACKS / 1000 * 5;
    expected["Main;f;g:g"] = TRACKS / 1000;
    expected["Main;f"] = uint64_t{TRACKS} * 100 - TRACKS / 1000;
    std::istringstream text(write(kpti_format_collapsed, t));
    size_t lines = 0;
    for (std::string line; std::getline(text, line); lines++) {
        const size_t space = line.rfind(' ');
        found[line.substr(0, space)] += std::stoull(line.substr(space + 1));
    }
    EXPECT_TRUE(found == expected);
    EXPECT_EQ(found["Main;f"], expected["Main;f"]);
    EXPECT_GT(lines, found.size()) << "stacks of the pool are written more than once";
    EXPECT_LT(lines, found.size() + 10);
}

/* A function that calls many others, in turns: its children are more than its list has. */
TEST_F(Formats, CollapsedStacksWithManyChildren)
{
    enum { CHILDREN = 50, ROUNDS = 20 };
    tape t;
    std::map<std::string, uint64_t> expected;
    const uint32_t outer = t.name("outer"), thread = t.thread("T");
    for (int i = 0; i < CHILDREN; i++)
        t.name("f" + std::to_string(i));
    int64_t ns = 0;
    t.enter(thread, outer, ns);
    for (int round = 0; round < ROUNDS; round++)
        for (uint32_t i = 0; i < CHILDREN; i++) {
            const uint32_t child = 1 + (i * 7 + static_cast<uint32_t>(round) * (i % 3)) % CHILDREN;
            t.enter(thread, child, ns);
            t.leave(thread, ns += 1000);
            expected["T;outer;f" + std::to_string(child - 1)]++;
        }
    t.leave(thread, ns);
    EXPECT_EQ(collapsed(t), expected);
}

TEST_F(Formats, NoCallsAreATraceToo)
{
    tape t;
    EXPECT_EQ(chrome_calls(chrome(t)).size(), 0u);
    EXPECT_EQ(perfetto(t).calls.size(), 0u);
    EXPECT_EQ(perfetto(t).process, "python");
    EXPECT_EQ(speedscope(t).size(), 0u);
    EXPECT_EQ(collapsed(t).size(), 0u);
    EXPECT_EQ(report(t).calls.size(), 0u);
    t.thread("idle");
    EXPECT_EQ(perfetto(t).threads, std::vector<std::string>{"idle"});
    EXPECT_EQ(speedscope(t).size(), 0u);
    EXPECT_EQ(collapsed(t).size(), 0u);
}

TEST_F(Formats, DeepStacksAreWhole)
{
    enum { DEPTH = 10000 };
    tape t;
    uint32_t f = t.name("f"), thread = t.thread("T");
    for (int64_t i = 0; i < DEPTH; i++)
        t.enter(thread, f, 1000 + i);
    for (int64_t i = 0; i < DEPTH; i++)
        t.leave(thread, 1000 + DEPTH + i);
    EXPECT_EQ(chrome_calls(chrome(t)), t.expected());
    EXPECT_EQ(perfetto(t).calls, t.expected());
    EXPECT_EQ(speedscope(t), t.expected());
    EXPECT_EQ(report(t).calls, t.expected());
    EXPECT_EQ(collapsed(t).size(), 0u) << "each took two nanoseconds itself";
}

TEST_F(Formats, TenThousandThreadsInTurnAreAllThere)
{
    tape t;
    uint32_t f = t.name("f");
    for (int64_t i = 0; i < THREADS; i++) {
        uint32_t thread = t.thread("Worker");
        t.enter(thread, f, 1000 + i * 10);
        t.leave(thread, 1005 + i * 10);
    }
    EXPECT_EQ(chrome_calls(chrome(t)), t.expected());
    EXPECT_EQ(perfetto(t).calls, t.expected());
    EXPECT_EQ(speedscope(t), t.expected());
    EXPECT_EQ(report(t).calls, t.expected());
    EXPECT_EQ(collapsed(t), (std::map<std::string, uint64_t>{{"Worker;f", THREADS / 200}}));
}

TEST_F(Formats, ADeepCollapsedStackIsALine)
{
    enum { DEPTH = 10000 };
    tape t;
    uint32_t f = t.name("f"), thread = t.thread("T");
    for (int64_t i = 0; i < DEPTH; i++)
        t.enter(thread, f, 0);
    for (int64_t i = 0; i < DEPTH; i++)
        t.leave(thread, 7000);
    auto lines = collapsed(t);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines.begin()->first.size(), 1u + 2 * DEPTH);
    EXPECT_EQ(lines.begin()->second, 7u);
}

TEST_F(Formats, NamesOfAnyBytesAreTheSameInAll)
{
    tape t;
    for (const std::string &name :
         {std::string("q\"uote\\back/slash"),
          "tab\tnew\nline\rnul" + std::string(1, '\0') + "esc\x1b;", std::string("größe 名前 𝒻"),
          std::string("bad \xff\xc3 bytes \xed\xa0\x80"), std::string("cut \xe2\x82"),
          std::string("</script>"), std::string(100000, 'x'), std::string(20000, '\xff'),
          std::string(20000, '\x01')})
        t.name(name, name, 1);
    uint32_t thread = t.thread("thread \xff\";\n");
    for (uint32_t i = 0; i < 9; i++) {
        t.enter(thread, i, 1000 + i * 2000);
        t.leave(thread, 2000 + i * 2000);
    }
    auto expected = chrome_calls(chrome(t));
    EXPECT_EQ(expected.size(), 9u);
    EXPECT_EQ(perfetto(t).calls, expected);
    EXPECT_EQ(speedscope(t), expected);
    EXPECT_EQ(report(t).calls, expected);
    auto lines = collapsed(t);
    EXPECT_EQ(lines.size(), 9u);
    EXPECT_EQ(lines["thread \uFFFD\": ;tab new line nul esc :"], 1u);
    EXPECT_EQ(lines["thread \uFFFD\": ;größe 名前 𝒻"], 1u);
    for (const auto &line : lines)
        EXPECT_TRUE(is_utf8(line.first));
}

TEST_F(Formats, RecordsOfANewerPluginAreReadByTheirStride)
{
    size_t count;
    const kpti_format *const *all = kpti_formats(&count);
    tape t = tape::random(3, 2, 50);
    for (size_t i = 0; i < count; i++) {
        std::string first = write(*all[i], t);
        for (uint32_t extra : {8u, 64u, 1000u})
            EXPECT_EQ(write(*all[i], t, extra), first) << all[i]->name << extra;
    }
    EXPECT_EQ(count, 5u);
}

/* Records that no correct plugin delivers. */
TEST_F(Formats, WhatNeverCameIsUnknownAndNoCrash)
{
    parcel p;
    kpt_activity a = parcel::plain(1, 0, 1000, 1000);
    a.name = UINT32_MAX;
    a.thread = 12;
    a.phase = KPT_PHASE_BEGIN;
    p.call(a).call(a);
    a.phase = KPT_PHASE_END;
    a.end_ns = 9000;
    p.call(a).call(a);
    auto trace = perfetto_trace(write(kpti_format_perfetto, p));
    ASSERT_EQ(trace.calls.size(), 2u);
    EXPECT_EQ(trace.calls[0].name, "unknown");
    auto frames = speedscope_calls(read_json(write(kpti_format_speedscope, p)), 500);
    ASSERT_EQ(frames.size(), 2u);
    EXPECT_EQ(frames[0].name, "unknown");
    EXPECT_EQ(write(kpti_format_collapsed, p), "unknown;unknown;unknown 8\n");
}

TEST_F(Formats, CallsThatDoNotMatchAreNoCrash)
{
    parcel ends, begins;
    kpt_activity a = parcel::plain(1, 0, 1000, 2000);
    a.phase = KPT_PHASE_END;
    ends.name(0, "f").thread(0, 7, "T").call(a).call(a);
    EXPECT_EQ(speedscope_calls(read_json(write(kpti_format_speedscope, ends))).size(), 0u);
    EXPECT_EQ(write(kpti_format_collapsed, ends), "");
    EXPECT_NE(write(kpti_format_perfetto, ends), "");
    a.phase = KPT_PHASE_BEGIN;
    begins.name(0, "f").thread(0, 7, "T").call(a).call(a);
    EXPECT_EQ(speedscope_calls(read_json(write(kpti_format_speedscope, begins))).size(), 2u);
    EXPECT_EQ(write(kpti_format_collapsed, begins), "");
}

TEST_F(Formats, TimesAtTheEndsOfTheWorldAreNoCrash)
{
    for (int64_t base : {INT64_MIN, INT64_C(0), INT64_MAX}) {
        parcel p;
        kpt_activity a = parcel::plain(1, 0, INT64_MIN, INT64_MIN);
        options.base_ns = base;
        a.phase = KPT_PHASE_BEGIN;
        a.flags = UINT32_MAX;
        a.line = UINT32_MAX;
        a.kind = KPT_KIND_GC;
        p.name(0, "f").thread(0, UINT64_MAX, "T").call(a);
        a.end_ns = INT64_MAX;
        a.value0 = a.value1 = a.value2 = UINT64_MAX;
        a.phase = KPT_PHASE_END;
        p.call(a);
        EXPECT_EQ(perfetto_trace(write(kpti_format_perfetto, p)).calls.size(), 1u);
        EXPECT_NO_THROW(read_json(write(kpti_format_speedscope, p)));
        EXPECT_NE(write(kpti_format_collapsed, p), "");
        EXPECT_NO_THROW(report_trace(write(kpti_format_report, p)));
    }
}

TEST_F(Formats, ProgressIsToldOnceABatch)
{
    std::vector<uint64_t> progress;
    tape t = tape::random(1, 2, 40);
    options.progress_ctx = &progress;
    options.progress = [](void *ctx, uint64_t calls) {
        static_cast<std::vector<uint64_t> *>(ctx)->push_back(calls);
    };
    (void)write(kpti_format_chrome, t);
    (void)write(kpti_format_perfetto, t);
    EXPECT_EQ(progress, (std::vector<uint64_t>{80, 80}));
}

} // namespace
