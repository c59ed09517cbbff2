/* gpu_operators_test.cc: GPU work and the operators and ranges that launched it. */

#include "tests/fixtures/batches/gpu_events.h"
#include "tests/fixtures/batches/writing.h"
#include "tests/fixtures/failing_heap.h"
#include "writers/gpu/gpu_summary.h"
#include "writers/operators/operator_table.h"

namespace
{

const kpti_heap default_heap = {};

/* A call on a thread, and a kernel that it starts. */
kpt_status add_launch(kpti_gpu_log &log, uint32_t thread, int64_t ns, uint64_t correlation,
                      int64_t kernel_ns, uint32_t stream = 7, int64_t kernel_start = 0)
{
    kpt_gpu_event call = {}, kernel = {};
    call.kind = KPT_GPU_RUNTIME;
    call.os_tid = tape::FIRST_TID + thread;
    call.start_ns = ns;
    call.end_ns = ns + 1;
    call.correlation = correlation;
    call.name = kpt_str_of("cudaLaunchKernel");
    call.device = call.context = call.stream = KPT_GPU_NONE;
    kernel.kind = KPT_GPU_KERNEL;
    kernel.os_tid = call.os_tid;
    kernel.start_ns = kernel_start ? kernel_start : ns + 10;
    kernel.end_ns = kernel.start_ns + kernel_ns;
    kernel.correlation = correlation;
    kernel.stream = stream;
    kernel.name = kpt_str_of("kernel");
    /* Kernels come before their calls. */
    kpt_status status = kpti_gpu_log_add(&log, &kernel, 0);
    return status == KPT_OK ? kpti_gpu_log_add(&log, &call, 0) : status;
}

class GpuOperators : public Writing
{
  protected:
    GpuOperators()
    {
        kpti_gpu_log_init(&log, &default_heap);
        kpti_operator_walk_init(&walk, &default_heap, nullptr, nullptr);
    }
    ~GpuOperators() override
    {
        kpti_operator_walk_free(&walk);
        kpti_gpu_log_free(&log);
    }
    void launch(uint32_t thread, int64_t ns, int64_t kernel_ns, uint32_t stream = 7)
    {
        ASSERT_EQ(add_launch(log, thread, ns, ++launches, kernel_ns, stream), KPT_OK);
    }
    std::map<std::string, kpti_operator_row> rows(tape &t)
    {
        std::map<std::string, kpti_operator_row> all;
        parcel delivery = t.delivery(KPT_ORDER_TIME);
        kpti_operator_table *table = nullptr;
        uint32_t count = 0;
        EXPECT_EQ(kpti_operator_table_open(&default_heap, 0, &table), KPT_OK);
        EXPECT_EQ(kpti_operator_table_add_gpu(table, &log), KPT_OK);
        EXPECT_EQ(kpti_operator_table_batch(table, delivery.batch()), KPT_OK);
        const kpti_operator_row *row = kpti_operator_table_rows(table, &count);
        for (uint32_t i = 0; i < count; i++, row++) {
            const kpt_str name = kpti_operator_table_name(table, row->name);
            all[std::string(name.data, name.size)] = *row;
        }
        kpti_operator_table_free(table);
        return all;
    }
    void walk_of(tape &t)
    {
        delivered = t.delivery(KPT_ORDER_TIME);
        ASSERT_EQ(kpti_operator_walk_add_gpu(&walk, &log), KPT_OK);
        ASSERT_EQ(kpti_operator_walk_batch(&walk, delivered.batch()), KPT_OK);
        options.operators = &walk;
        options.gpu = &log;
    }
    std::vector<json> of_category(const json &trace, const std::string &category)
    {
        std::vector<json> found;
        for (const json &e : trace["traceEvents"].items)
            if (e["ph"].text == "X" && e["cat"].text == category) found.push_back(e);
        return found;
    }

    kpti_gpu_log log;
    kpti_operator_walk walk;
    parcel delivered{0};
    uint64_t launches = 0;
};

TEST_F(GpuOperators, TheInnermostOperatorOwnsALaunch)
{
    tape t;
    uint32_t main = t.thread("Main"), other = t.thread("Other");
    uint32_t outer = t.name("outer"), inner = t.name("inner"), step = t.name("step");
    t.begin_range(main, step, 1, 100);
    t.enter_operator(main, outer, 200);
    t.enter_operator(main, inner, 300);
    t.leave(main, 400);
    t.enter_operator(main, outer, 500); /* inside itself */
    t.leave(main, 600);
    t.leave(main, 700);
    t.end_range(main, 1, 800);
    launch(main, 50, 100000); /* before all */
    launch(main, 150, 1);
    launch(main, 250, 20);
    launch(main, 350, 300);
    launch(main, 550, 4000);
    launch(main, 900, 100000); /* behind all */
    launch(other, 350, 100000);
    const auto all = rows(t);
    EXPECT_EQ(all.at("inner").gpu_own_ns, 300u);
    EXPECT_EQ(all.at("inner").gpu_total_ns, 300u);
    EXPECT_EQ(all.at("outer").gpu_own_ns, 4020u);
    EXPECT_EQ(all.at("outer").gpu_total_ns, 4320u);
    EXPECT_EQ(all.at("step").gpu_own_ns, 1u);
    EXPECT_EQ(all.at("step").gpu_total_ns, 4321u);
}

TEST_F(GpuOperators, RandomProgramsAgreeWithASlowModel)
{
    for (uint32_t seed = 0; seed < 20; seed++) {
        tape t = tape::random(seed, 3, 200);
        std::mt19937 next(seed);
        std::map<std::string, uint64_t> expected;
        kpti_gpu_log_free(&log);
        kpti_gpu_log_init(&log, &default_heap);
        for (kpt_activity &a : t.calls)
            if (a.name % 2) a.kind = KPT_KIND_OPERATOR;
        for (int i = 0; i < 300; i++) {
            const uint32_t thread = static_cast<uint32_t>(next() % 3);
            const int64_t ns = static_cast<int64_t>(next() % 1000000);
            const kpt_activity *innermost = nullptr;
            bool is_clear = true;
            for (const kpt_activity &a : t.calls) {
                if (a.thread != thread) continue;
                is_clear = is_clear && a.start_ns != ns && a.end_ns != ns;
                if (a.kind == KPT_KIND_OPERATOR && a.start_ns < ns && ns < a.end_ns &&
                    (!innermost || a.depth > innermost->depth))
                    innermost = &a;
            }
            if (!is_clear) continue;
            launch(thread, ns, 1 + i);
            if (innermost)
                expected["file.py(" + std::to_string(innermost->name) + "): f" +
                         std::to_string(innermost->name)] += static_cast<uint64_t>(1 + i);
        }
        std::map<std::string, uint64_t> own;
        for (const auto &row : rows(t))
            if (row.second.gpu_own_ns) own[row.first] = row.second.gpu_own_ns;
        EXPECT_EQ(own, expected) << seed;
    }
}

TEST_F(GpuOperators, KernelsHaveTheirOperatorInTheFile)
{
    tape t;
    uint32_t main = t.thread("Main"), engine = t.thread("autograd");
    t.name("unused");
    uint32_t f = t.name("model.py(3): forward", "model.py", 3), op = t.name("op"),
             node = t.name("node");
    t.enter(main, f, 1000);
    t.enter_operator(main, op, 1100, 8);
    t.enter_operator(main, op, 1110);
    t.leave(main, 1150);
    t.leave(main, 1200);
    t.leave(main, 2000);
    t.enter_operator(engine, node, 3000, 8, tape::host_number(main));
    t.leave(engine, 3500);
    t.enter_operator(engine, node, 4000, 9, tape::host_number(main)); /* its forward is lost */
    t.leave(engine, 4500);
    launch(main, 1120, 5);
    launch(main, 1500, 5); /* in no operator */
    launch(engine, 3100, 5);
    launch(engine, 4100, 5);
    walk_of(t);
    const json trace = chrome(t);
    std::vector<std::string> ids;
    for (const json &e : of_category(trace, "cpu_op"))
        ids.push_back(e["args"]["External id"].text);
    for (const char *category : {"kernel", "cuda_runtime"}) {
        const std::vector<json> found = of_category(trace, category);
        ASSERT_EQ(found.size(), 4u);
        EXPECT_EQ(found[0]["args"]["External id"].text,
                  ids[0]); /* the inner one is written first */
        EXPECT_FALSE(found[0]["args"].has("forward at"));
        EXPECT_FALSE(found[1]["args"].has("External id"));
        EXPECT_EQ(found[2]["args"]["External id"].text, ids[2]);
        EXPECT_EQ(found[2]["args"]["forward at"].text, "model.py(3): forward");
        EXPECT_EQ(found[3]["args"]["forward at"].text, "(not recorded)");
    }
    kpti_operator_walk_free(&walk);
    kpti_operator_walk_init(&walk, &default_heap, nullptr, nullptr);
    walk_of(t);
    std::map<std::string, std::vector<std::string>> external;
    for (const note_seen &slice : perfetto(t).slices) {
        const auto found = slice.args.find("External id");
        external[slice.category].push_back(found == slice.args.end() ? "" : found->second);
        if (slice.category != "kernel" && slice.category != "cuda_runtime") continue;
        const auto line = slice.args.find("forward at");
        if (slice.start_ns < 3000)
            EXPECT_TRUE(line == slice.args.end());
        else
            EXPECT_EQ(line->second,
                      slice.start_ns < 4000 ? "model.py(3): forward" : "(not recorded)");
    }
    ASSERT_EQ(external["cpu_op"].size(), 4u);
    EXPECT_EQ(external["cpu_op"][1], ""); /* the outer one launched nothing itself */
    for (const char *category : {"kernel", "cuda_runtime"}) {
        EXPECT_EQ(external[category],
                  (std::vector<std::string>{external["cpu_op"][0], "", external["cpu_op"][2],
                                            external["cpu_op"][3]}));
        EXPECT_NE(external[category][0], "");
    }
    kpti_gpu_report report = {};
    ASSERT_EQ(kpti_gpu_report_make(&report, &log, &walk.launches), KPT_OK);
    std::map<std::string, uint64_t> lines;
    for (uint32_t i = 0; i < report.line_count; i++)
        lines[(report.lines[i].is_backward ? "backward of " : "plain") +
              std::string(report.lines[i].forward.data ? report.lines[i].forward.data : "",
                          report.lines[i].forward.size)] = report.lines[i].count;
    EXPECT_EQ(lines,
              (std::map<std::string, uint64_t>{
                  {"plain", 2}, {"backward of ", 1}, {"backward of model.py(3): forward", 1}}));
    ASSERT_EQ(report.device_count, 1u);
    lines.clear();
    for (uint32_t i = 0; i < report.devices[0].gap_count; i++) {
        const kpti_gpu_gap &gap = report.devices[0].gaps[i];
        lines[(gap.is_backward ? "backward of " : "plain") +
              std::string(gap.forward.data, gap.forward.size)]++;
    }
    EXPECT_EQ(lines,
              (std::map<std::string, uint64_t>{
                  {"plain", 1}, {"backward of ", 1}, {"backward of model.py(3): forward", 1}}));
    kpti_gpu_report_free(&report);
}

TEST_F(GpuOperators, LaunchesOfAnotherClockAreShiftedWithIt)
{
    const kpti_clock_shift shift = {1000000, 0, 0};
    kpti_gpu_launch *end;
    launch(0, 100, 5);
    launch(0, 200, 5);
    ASSERT_EQ(kpti_operator_walk_add_gpu(&walk, &log), KPT_OK);
    kpti_gpu_launches_shift(&walk.launches, &shift);
    kpti_gpu_launches_claim(&walk.launches, tape::FIRST_TID, 150, 1000150, 7);
    kpti_gpu_launches_claim(&walk.launches, tape::FIRST_TID, 0, 2000000, 8);
    const kpti_gpu_launch *first =
        kpti_gpu_launches_of_thread(&walk.launches, tape::FIRST_TID, &end);
    ASSERT_EQ(end - first, 2);
    EXPECT_EQ(first[0].external, 7u);
    EXPECT_EQ(first[1].external, 8u);
}

TEST_F(GpuOperators, RangesAreOnTheStreamsOfTheirKernels)
{
    tape t;
    uint32_t main = t.thread("Main");
    t.name("unused");
    uint32_t step = t.name("step"), part = t.name("\"part\"");
    t.begin_range(main, step, 1, 1000);
    t.begin_range(main, part, 2, 2000);
    t.end_range(main, 2, 3000);
    t.end_range(main, 1, 4000);
    t.begin_range(main, step, 3, 5000); /* launches nothing */
    t.end_range(main, 3, 6000);
    launch(main, 1500, 100);
    launch(main, 2500, 100);
    launch(main, 2600, 100, 8);
    walk_of(t);
    std::vector<seen> found;
    for (const json &e : of_category(chrome(t), "gpu_user_annotation"))
        found.push_back({static_cast<uint64_t>(std::stoul(e["tid"].text)), e["name"].text,
                         static_cast<int64_t>(std::stod(e["ts"].text) * 1000 + 500.5),
                         static_cast<int64_t>(std::stod(e["dur"].text) * 1000 + 0.5)});
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, (std::vector<seen>{{7, "step", 1510, 1100},
                                        {7, "\"part\"", 2510, 100},
                                        {8, "\"part\"", 2610, 100},
                                        {8, "step", 2610, 100}}));
}

/* On a track below that of the stream; a range that crosses another one there has a track of its own. */
TEST_F(GpuOperators, PerfettoHasRangesBelowTheStreams)
{
    tape t;
    uint32_t main = t.thread("Main"), other = t.thread("Other");
    t.name("unused");
    uint32_t step = t.name("step"), part = t.name("part"), crossing = t.name("crossing");
    t.begin_range(main, step, 1, 1000);
    t.begin_range(main, part, 2, 2000);
    t.end_range(main, 2, 3000);
    t.end_range(main, 1, 4000);
    t.begin_range(other, crossing, 3, 1000);
    t.end_range(other, 3, 9000);
    launch(main, 1500, 100);
    launch(main, 2500, 100);
    launch(main, 2600, 100, 8);
    launch(other, 2000, 100);
    launch(other, 8000, 100);
    walk_of(t);
    std::vector<seen> found;
    for (const note_seen &slice : perfetto(t).slices)
        if (slice.category == "gpu_user_annotation") {
            EXPECT_EQ(slice.track, "annotations");
            found.push_back({0, slice.name, slice.start_ns, slice.end_ns});
        }
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, (std::vector<seen>{{0, "step", 1510, 2610},
                                        {0, "crossing", 2010, 8110},
                                        {0, "part", 2510, 2610},
                                        {0, "part", 2610, 2710},
                                        {0, "step", 2610, 2710}}));
}

TEST_F(GpuOperators, EveryAllocationMayFail)
{
    tape t = tape::random(3, 2, 100);
    uint32_t range = t.name("range");
    for (kpt_activity &a : t.calls) {
        if (a.name % 2) a.kind = KPT_KIND_OPERATOR;
        if (a.kind == KPT_KIND_OPERATOR && a.name % 4 == 3) a.value0 = a.value1 = 1;
    }
    t.begin_range(0, range, 1, 10000000);
    for (int i = 0; i < 500; i++)
        launch(i % 2 ? 0 : 1, 1000 + 500 * i, 5);
    launch(0, 10000001, 5);
    t.end_range(0, 1, 10000002);
    parcel delivery = t.delivery(KPT_ORDER_TIME);
    const uint64_t failures = fail_each_allocation([&](const kpti_heap &heap) {
        kpti_operator_walk made;
        kpti_operator_walk_init(&made, &heap, nullptr, nullptr);
        kpt_status status = kpti_operator_walk_add_gpu(&made, &log);
        if (status == KPT_OK) status = kpti_operator_walk_batch(&made, delivery.batch());
        kpti_operator_walk_free(&made);
        return status;
    });
    EXPECT_GE(failures, 7U);
}

} // namespace
