/* gpu_formats_test.cc: GPU activities in the formats that contain them, with any bytes in names. */
#include <gtest/gtest.h>

#include "tests/fixtures/batches/gpu_events.h"
#include "tests/fixtures/batches/writing.h"

namespace
{

class GpuFormats : public Writing
{
  protected:
    GpuFormats()
    {
        const kpti_heap heap = {};
        kpti_gpu_log_init(&log, &heap);
        options.gpu = &log;
        uint32_t f = t.name("f");
        uint32_t main = t.thread("main");
        t.enter(main, f, 1000);
        t.leave(main, 9000);
    }
    ~GpuFormats() override
    {
        kpti_gpu_log_free(&log);
    }
    static std::vector<json> of_category(const json &trace, const std::string &category)
    {
        std::vector<json> found;
        for (const json &e : trace["traceEvents"].items)
            if (e.has("cat") && e["cat"].text == category) found.push_back(e);
        return found;
    }

    tape t;
    kpti_gpu_log log;
};

TEST_F(GpuFormats, WithoutGpusNothingIsSaid)
{
    json trace = chrome(t);
    EXPECT_TRUE(trace["deviceProperties"].items.empty());
    EXPECT_FALSE(trace.has("stackFrames"));
    EXPECT_FALSE(trace.has("gpu"));
}

TEST_F(GpuFormats, NamesOfAnyBytesAreValidJson)
{
    ASSERT_EQ(add_gpu_device(log), KPT_OK);
    ASSERT_EQ(add_gpu(log, KPT_GPU_KERNEL, "k\"\n\xff\\", 2000, 3500, 1, 4), KPT_OK);
    ASSERT_EQ(add_gpu(log, KPT_GPU_KERNEL, std::string(200000, '"'), 4000, 3000, 2, 4), KPT_OK);
    ASSERT_EQ(add_gpu(log, KPT_GPU_RUNTIME, "cudaLaunchKernel", 1500, 1600, 1, 4), KPT_OK);
    json trace = chrome(t);
    auto kernels = of_category(trace, "kernel");
    ASSERT_EQ(kernels.size(), 2u);
    EXPECT_EQ(kernels[0]["name"].text, "k\"\n\xef\xbf\xbd\\");
    EXPECT_EQ(kernels[0]["ts"].text, "1.500");
    EXPECT_EQ(kernels[0]["dur"].text, "1.500");
    EXPECT_EQ(kernels[0]["args"]["launched at"].text, "a.py(4): f");
    EXPECT_EQ(trace["deviceProperties"].items[0]["name"].text, "A \"GPU\"");
    EXPECT_EQ(trace["stackFrames"]["2"]["name"].text, "a.py(4): f");
    EXPECT_EQ(trace["stackFrames"]["2"]["parent"].text, "1");
    EXPECT_EQ(of_category(trace, "ac2g").size(), 2u) << "only where both are there";
    EXPECT_EQ(of_category(trace, "cuda_runtime")[0]["tid"].text, "100");
}

TEST_F(GpuFormats, EventsOfAnythingAreValid)
{
    std::mt19937_64 random(3);
    for (int i = 0; i < 2000; i++) {
        kpt_gpu_event e = any_gpu_event(random);
        if (i % 2) e.kind = static_cast<uint16_t>(i % 11);
        ASSERT_EQ(kpti_gpu_log_add(&log, &e, 0), KPT_OK);
    }
    EXPECT_GE(chrome(t)["traceEvents"].items.size(), 2000u);
    EXPECT_FALSE(write(kpti_format_perfetto, t).empty());
    EXPECT_EQ(speedscope(t).size(), 1u);
    EXPECT_EQ(collapsed(t).size(), 1u);
}

TEST_F(GpuFormats, PerfettoHasTracksAndFlows)
{
    ASSERT_EQ(add_gpu_device(log), KPT_OK);
    ASSERT_EQ(add_gpu(log, KPT_GPU_RUNTIME, "cudaLaunchKernel", 1500, 1600, 1, 4), KPT_OK);
    ASSERT_EQ(add_gpu(log, KPT_GPU_KERNEL, "k", 2000, 3500, 1, 4), KPT_OK);
    const wire trace(write(kpti_format_perfetto, t));
    std::map<uint64_t, std::string> tracks;
    std::map<uint64_t, uint64_t> parents;
    std::vector<std::pair<uint64_t, uint64_t>> flows; /* track, flow */
    for (const wire &packet : trace.messages(1)) {
        if (packet.has(60)) {
            const wire track = packet.message(60);
            tracks[track.number(1)] = track.has(4) ? "thread" : track.text(2);
            parents[track.number(1)] = track.number(5);
        }
        if (!packet.has(11)) continue;
        const wire event = packet.message(11);
        if (event.has(47)) flows.emplace_back(event.number(11), event.number(47));
    }
    ASSERT_EQ(flows.size(), 2u);
    EXPECT_EQ(flows[0].second, flows[1].second);
    EXPECT_EQ(tracks[flows[0].first], "thread");
    EXPECT_EQ(tracks[flows[1].first], "stream 7 ");
    EXPECT_EQ(tracks[parents[flows[1].first]], "GPU 0 A \"GPU\"");
}

} // namespace
