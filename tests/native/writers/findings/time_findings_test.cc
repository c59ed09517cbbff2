/* time_findings_test.cc: collections, functions that became slower, and gaps of GPUs, as in thread_findings_test.cc. */
#include "tests/native/writers/findings/findings_case.h"

namespace
{

/* --- collections ------------------------------------------------------------------------------- */

class Collections : public Findings
{
  protected:
    void run(int count, int64_t ns, uint16_t kind)
    {
        const uint32_t main = python("main"),
                       gc = kind == KPT_KIND_GC ? t.name("Python GC") : built_in("collect");
        t.thread("MainThread");
        t.enter(0, main, 0);
        for (int i = 0; i < count; i++) {
            t.enter(0, gc, i * (1000 * MS / count)).kind = kind;
            t.leave(0, i * (1000 * MS / count) + ns);
        }
        t.leave(0, 1000 * MS);
    }
};

TEST_F(Collections, ThatTakeMuchOfTheRunAreFound)
{
    run(100, MS, KPT_KIND_GC);
    const json made = found();
    ASSERT_EQ(kinds(made), "gc");
    EXPECT_EQ(evidence(made, "count"), 100);
    EXPECT_EQ(evidence(made, "total_ns"), 100e6);
    EXPECT_EQ(evidence(made, "permille_of_run"), 100);
    EXPECT_EQ(made["limits"].items.size(), 1u) << "C functions only";
}

TEST_F(Collections, OneLongPauseIsFound)
{
    run(1, 120 * MS, KPT_KIND_GC);
    EXPECT_EQ(kinds(), "gc");
}

/* 110 ms of 20 s, of which the collections take 0.6 %. */
TEST_F(Collections, OneLongPauseOfALongRunIsNone)
{
    run(1, 110 * MS, KPT_KIND_GC);
    call(0, python("main"), 19000 * MS, 1000 * MS);
    EXPECT_EQ(kinds(), "");
}

TEST_F(Collections, ThatTakeLittleAreNone)
{
    run(100, MS * 9 / 10, KPT_KIND_GC);
    EXPECT_EQ(kinds(), "");
}

TEST_F(Collections, ThatTheProgramMakesAreFoundWithoutTheOthers)
{
    run(100, MS, KPT_KIND_C);
    const json made = found();
    ASSERT_EQ(kinds(made), "gc");
    EXPECT_NE(made["findings"].items[0]["text"].text.find("gc.collect"), std::string::npos);
    t = tape();
    run(100, MS / 4, KPT_KIND_C);
    EXPECT_EQ(kinds(), "");
}

/* --- functions that became slower ---------------------------------------------------------------- */

class Slower : public Findings
{
  protected:
    /* COUNT calls of a millisecond and what MORE adds to the i-th. */
    template <typename function> std::string calls(int count, function more)
    {
        const uint32_t lookup = python("lookup"), main = python("main");
        int64_t at = 0;
        t = tape();
        t.thread("MainThread");
        python("lookup");
        python("main");
        t.enter(0, main, 0);
        for (int i = 0; i < count; i++) {
            const int64_t ns = MS + static_cast<int64_t>(more(i) * static_cast<double>(MS));
            call(0, lookup, at, ns);
            at += ns;
        }
        t.leave(0, at);
        return kinds();
    }
};

TEST_F(Slower, ThatBecomeSlowerAreFound)
{
    ASSERT_EQ(calls(1000, [](int i) { return i * 0.01; }), "slower");
    const json made = found();
    EXPECT_EQ(made["findings"].items[0]["evidence"]["function"]["short"].text,
              "lookup (app/work.py:7)");
    EXPECT_EQ(evidence(made, "calls"), 1000);
    EXPECT_NEAR(evidence(made, "first_median_ns"), 2.66e6, 0.1e6);
    EXPECT_NEAR(evidence(made, "last_median_ns"), 9.33e6, 0.1e6);
    const json &place = made["findings"].items[0]["places"].items.at(0);
    EXPECT_EQ(place["ns"].number(), evidence(made, "last_median_ns"));
}

TEST_F(Slower, OnesThatAreNot)
{
    EXPECT_EQ(calls(1000, [](int) { return 0.0; }), "");
    EXPECT_EQ(calls(1000, [](int i) { return (1000 - i) * 0.01; }), "") << "faster";
    EXPECT_EQ(calls(1000, [](int i) { return i % 2 * 9.0; }), "") << "two kinds of calls";
    EXPECT_EQ(calls(1000, [](int i) { return i % 20 == 19 ? 50.0 : 0.0; }), "") << "some are slow";
    EXPECT_EQ(calls(1000, [](int i) { return i > 950 ? 50.0 : 0.0; }), "") << "the end is slow";
    EXPECT_EQ(calls(1000, [](int i) { return i * 0.0005; }), "") << "by half";
    EXPECT_EQ(calls(30, [](int i) { return i * 1.0; }), "") << "few calls";
    EXPECT_EQ(calls(1000, [](int i) { return (i / 10) % 37 * 0.1; }), "") << "inputs of many sizes";
}

/* What a function calls is not its own: only the one that became slower is found. */
TEST_F(Slower, CallersAreNone)
{
    const uint32_t outer = python("outer"), inner = python("inner");
    int64_t at = 0;
    t.thread("MainThread");
    for (int i = 0; i < 300; i++) {
        const int64_t ns = MS + i * MS / 10;
        t.enter(0, outer, at);
        call(0, inner, at + 1000, ns);
        at += ns + 2000;
        t.leave(0, at);
    }
    const json made = found();
    ASSERT_EQ(kinds(made), "slower");
    EXPECT_EQ(made["findings"].items[0]["evidence"]["function"]["short"].text,
              "inner (app/work.py:7)");
}

/* Longer waits are no slower work, but C functions are. */
TEST_F(Slower, WaitsAreNotCounted)
{
    for (const char *function : {"sleep", "sort"}) {
        t = tape();
        const uint32_t pause = python("pause"), c = built_in(function);
        int64_t at = 0;
        t.thread("MainThread");
        for (int i = 0; i < 300; i++) {
            const int64_t ns = MS + i * MS / 10;
            t.enter(0, pause, at);
            call(0, c, at + 10, ns, KPT_KIND_C);
            at += ns + 20;
            t.leave(0, at);
        }
        EXPECT_EQ(kinds(), strcmp(function, "sleep") == 0 ? "" : "slower");
    }
}

/* --- GPUs -------------------------------------------------------------------------------------- */

class GpuGaps : public Findings
{
  protected:
    void SetUp() override
    {
        Findings::SetUp();
        t.thread("MainThread");
        call(0, python("main"), 0, 1000 * MS);
        ASSERT_EQ(add_gpu_device(gpu), KPT_OK);
    }
    void kernels(int from_ms, int to_ms, uint32_t line)
    {
        for (int i = from_ms; i < to_ms; i++)
            ASSERT_EQ(add_gpu(gpu, KPT_GPU_KERNEL, "gemm", i * MS, i * MS + MS / 2, 0, line),
                      KPT_OK);
    }
};

TEST_F(GpuGaps, LongOnesAreFoundWithTheLineThatEndedThem)
{
    kernels(0, 300, 5);
    kernels(450, 900, 42);
    const json made = found();
    ASSERT_EQ(kinds(made), "gpu_gap");
    EXPECT_EQ(evidence(made, "device"), 0);
    EXPECT_EQ(evidence(made, "ns"), 150.5e6);
    const std::string text = made["findings"].items[0]["text"].text;
    EXPECT_NE(text.find("until gemm, launched by a.py:42 f"), std::string::npos) << text;
    const json &place = made["findings"].items[0]["places"].items.at(0);
    EXPECT_EQ(place["at_ns"].number(), 299.5e6);
    EXPECT_EQ(place["tid"].number(), 0);
}

TEST_F(GpuGaps, ShortOnesAreNone)
{
    kernels(0, 300, 5);
    kernels(330, 900, 42); /* 30 ms of 900 */
    EXPECT_EQ(kinds(), "");
}

} // namespace
