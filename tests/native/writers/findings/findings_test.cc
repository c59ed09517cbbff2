/* findings_test.cc: where the time went, what is missing, and what is refused. */
#include "tests/fixtures/failing_heap.h"
#include "tests/native/writers/findings/findings_case.h"

namespace
{

TEST_F(Findings, AnEmptyRecordingHasNone)
{
    const json made = found();
    EXPECT_EQ(made["calls"].number(), 0);
    EXPECT_EQ(made["duration_ns"].number(), 0);
    EXPECT_TRUE(made["own"].items.empty());
    EXPECT_TRUE(made["findings"].items.empty());
}

TEST_F(Findings, RandomCallsHaveNone)
{
    for (uint32_t seed = 0; seed < 20; seed++) {
        t = tape::random(seed, 5, 2000);
        EXPECT_EQ(kinds(), "") << seed;
    }
}

/* --- where the time went ----------------------------------------------------------------------- */

TEST_F(Findings, TheThreeLargestOwnTimesStandThere)
{
    const uint32_t main = python("main"), json_file = library("json/decoder.py", "decode"),
                   package = python("get", "/env/lib/python3.12/site-packages/requests/api.py"),
                   scan = built_in("scan_once", "_json.Scanner"), thread = t.thread("MainThread");
    t.enter(thread, main, 0);
    t.enter(thread, json_file, 10 * MS);
    call(thread, scan, 12 * MS, 30 * MS, KPT_KIND_C);
    t.leave(thread, 45 * MS);
    call(thread, package, 50 * MS, 4 * MS);
    call(thread, package, 60 * MS, 6 * MS);
    t.leave(thread, 100 * MS);
    const json made = found();
    EXPECT_EQ(made["duration_ns"].number(), 100e6);
    ASSERT_EQ(made["own"].items.size(), 3u);
    const json &own = made["own"];
    EXPECT_EQ(own.items[0]["short"].text, "main (app/work.py:7)");
    EXPECT_EQ(own.items[0]["own_ns"].number(), 55e6);
    EXPECT_EQ(own.items[0]["share"].number(), 0.55);
    EXPECT_EQ(own.items[1]["short"].text, "_json.Scanner.scan_once");
    EXPECT_EQ(own.items[2]["calls"].number(), 2);
    EXPECT_EQ(own.items[2]["longest"]["at_ns"].number(), 60e6);
    EXPECT_EQ(own.items[2]["longest"]["thread"].text, "MainThread");
    std::string modules;
    for (const json &row : made["modules"].items)
        modules += row["module"].text + " " + row["own_ns"].text + "\n";
    EXPECT_EQ(modules, "app/work.py 55000000\njson 35000000\nrequests 10000000\n");
}

TEST_F(Findings, NamesAreEscapedAndUnknownOnesHarmless)
{
    const uint32_t strange = python("f\"\n\\\x01\xff"), thread = t.thread("a\"b");
    call(thread, strange, 0, MS);
    EXPECT_NE(found()["own"].items.at(0)["short"].text.find("f\"\n\\\x01"), std::string::npos);
    parcel p;
    kpt_activity a = parcel::plain(1, 0, 5, 10);
    a.name = 3;
    a.thread = 9;
    p.call(a);
    kpti_text_builder out = {};
    ASSERT_EQ(write(malloc_heap, p, &out), KPT_OK);
    EXPECT_EQ(read_json(std::string(out.text, out.size))["own"].items.at(0)["short"].text,
              "an unknown function");
    kpti_text_builder_free(&out);
}

/* A place has its thread's name, also where most threads have been forgotten. */
TEST_F(Findings, PlacesOfManyThreadsHaveTheirNames)
{
    const uint32_t work = python("work");
    kpti_findings *findings;
    kpti_text_builder out = {};
    const kpti_findings_rest rest = {&stats, nullptr, nullptr};
    std::vector<parcel> batches;
    ASSERT_EQ(kpti_findings_open(&malloc_heap, &notes, &findings), KPT_OK);
    parcel names;
    names.name(work, "work", 7, "/srv/app/work.py", "work");
    ASSERT_EQ(kpti_findings_batch(findings, names.batch()), KPT_OK);
    for (uint32_t thread = 0; thread < 20000; thread += 100) {
        parcel &p = batches.emplace_back();
        for (uint32_t i = thread; i < thread + 100; i++) {
            kpt_activity a = parcel::plain(i + 1, 0, i, i + 2 + i % 20000 / 19999 * MS);
            a.thread = i;
            a.name = work;
            p.thread(i, 50000 + i, "thread-" + std::to_string(i)).call(a);
        }
        ASSERT_EQ(kpti_findings_batch(findings, p.batch()), KPT_OK);
    }
    ASSERT_EQ(kpti_findings_write(findings, &rest, &out), KPT_OK);
    const json made = read_json(std::string(out.text, out.size));
    EXPECT_EQ(made["threads"].number(), 20000);
    const json &place = made["own"].items.at(0)["longest"];
    EXPECT_EQ(place["thread"].text, "thread-19999");
    EXPECT_EQ(place["tid"].number(), 69999);
    kpti_text_builder_free(&out);
    kpti_findings_free(findings);
}

TEST_F(Findings, OtherOrdersAndShortRecordsAreRefused)
{
    parcel p = t.delivery(KPT_ORDER_TIME);
    kpti_text_builder out = {};
    EXPECT_EQ(write(malloc_heap, p, &out), KPT_E_UNSUPPORTED);
    parcel fine = t.delivery(KPT_ORDER_THREAD);
    kpt_batch batch = *fine.batch();
    batch.struct_size = 8;
    kpti_findings *findings;
    ASSERT_EQ(kpti_findings_open(&malloc_heap, &notes, &findings), KPT_OK);
    EXPECT_EQ(kpti_findings_batch(findings, &batch), KPT_E_SIZE);
    kpti_findings_free(findings);
}

/* --- what is missing ----------------------------------------------------------------------------- */

TEST_F(Findings, WhatIsMissingIsFound)
{
    call(t.thread("MainThread"), python("main"), 0, MS);
    EXPECT_EQ(kinds(), "");
    stats.events_dropped = 1234;
    stats.threads_unreached = 1;
    stats.functions_disabled = 2;
    const json made = found();
    EXPECT_EQ(kinds(made), "missing missing missing");
    EXPECT_EQ(evidence(made, "count"), 1234);
    EXPECT_EQ(made["findings"].items[0]["text"].text.find("1,234 events were dropped"), 0u);
}

/* --- memory ------------------------------------------------------------------------------------ */

TEST_F(Findings, NoMemoryAtAnyPointLosesNothing)
{
    const uint32_t acquire = built_in("acquire", "_thread.lock"), update = python("update"),
                   one = task("Task-1", "answer");
    for (uint32_t thread = 0; thread < 3; thread++) {
        t.thread("worker");
        t.enter(thread, update, 0);
        t.point(thread, one, 0);
        for (int i = 0; i < 200; i++)
            call(thread, acquire, i * MS, MS / 2, KPT_KIND_C);
        t.leave(thread, 300 * MS);
    }
    for (uint32_t i = 0; i < 100; i++)
        call(0, python("f" + std::to_string(i), "/f" + std::to_string(i)), 400 * MS + i, 1);
    ASSERT_EQ(add_gpu(gpu, KPT_GPU_KERNEL, "gemm", 0, 100), KPT_OK);
    parcel p = t.delivery(KPT_ORDER_THREAD);
    const uint64_t failures = fail_each_allocation([&](const kpti_heap &heap) {
        kpti_text_builder out = {};
        out.heap = heap;
        const kpt_status status = write(heap, p, &out);
        kpti_text_builder_free(&out);
        return status;
    });
    EXPECT_GE(failures, 10U);
}

} // namespace
