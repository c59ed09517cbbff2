/* real_gpu_test.cc: with a GPU, its driver and the real CUPTI; skipped where they are not. */
#include <cuda.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <thread>

#include "tests/native/gpu/tracing_gpu.h"
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define HAS_NVTX 1
#endif

static const char program[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry spin(.param .u64 p, .param .u32 n)
{
    .reg .pred %q;
    .reg .b32 %i, %m, %x;
    .reg .b64 %a;
    ld.param.u64 %a, [p];
    ld.param.u32 %m, [n];
    mov.u32 %i, 0;
    mov.u32 %x, 1;
LOOP:
    setp.ge.u32 %q, %i, %m;
    @%q bra DONE;
    mad.lo.u32 %x, %x, 1664525, 1013904223;
    add.u32 %i, %i, 1;
    bra LOOP;
DONE:
    cvta.to.global.u64 %a, %a;
    st.global.u32 [%a], %x;
    ret;
}
)";

/* The driver's functions, by name. */
#define CALL(name, ...)    (reinterpret_cast<decltype(&name)>(symbol(#name))(__VA_ARGS__))
#define CALL_V2(name, ...) (reinterpret_cast<decltype(&name)>(symbol(#name "_v2"))(__VA_ARGS__))

static void *symbol(const char *name)
{
    static void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    return library ? dlsym(library, name) : nullptr;
}

class RealGpu : public TracingGpu
{
  protected:
    void SetUp() override
    {
        if (access("/dev/nvidiactl", F_OK) != 0 || !symbol("cuInit")) GTEST_SKIP() << "no GPU";
    }

    void use_cuda()
    {
        CUdevice device = 0;
        int count = 0;
        ASSERT_EQ(CALL(cuInit, 0), CUDA_SUCCESS);
        ASSERT_EQ(CALL(cuDeviceGetCount, &count), CUDA_SUCCESS);
        ASSERT_GT(count, 0);
        ASSERT_EQ(CALL(cuDeviceGet, &device, 0), CUDA_SUCCESS);
        ASSERT_EQ(CALL(cuDevicePrimaryCtxRetain, &context, device), CUDA_SUCCESS);
        ASSERT_EQ(CALL(cuCtxSetCurrent, context), CUDA_SUCCESS);
        ASSERT_EQ(CALL(cuModuleLoadData, &module, program), CUDA_SUCCESS);
        ASSERT_EQ(CALL(cuModuleGetFunction, &spin, module, "spin"), CUDA_SUCCESS);
        ASSERT_EQ(CALL_V2(cuMemAlloc, &memory, 1 << 20), CUDA_SUCCESS);
        for (CUstream &stream : streams)
            ASSERT_EQ(CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    }

    CUresult launch(CUstream stream, uint32_t rounds)
    {
        void *parameters[] = {&memory, &rounds};
        return CALL(cuLaunchKernel, spin, 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr);
    }

    CUcontext context = nullptr;
    CUmodule module = nullptr;
    CUfunction spin = nullptr;
    CUdeviceptr memory = 0;
    CUstream streams[2] = {};
};

/* The first test of the process: CUDA is initialised after start. */
TEST_F(RealGpu, BeginsWithCuda)
{
    ASSERT_EQ(make(), KPT_OK);
    ASSERT_EQ(tracer.flags, 0u) << error();
    ASSERT_EQ(start(), KPT_OK) << error();
    const bool waited = stats().state == KPT_GPU_WAITING;
    set_python_line(7);
    use_cuda();
    ASSERT_EQ(launch(streams[0], 100), CUDA_SUCCESS);
    EXPECT_EQ(stats().state, (uint32_t)KPT_GPU_RECORDING);
    ASSERT_EQ(stop(), KPT_OK) << error();
    ASSERT_EQ(collect(), KPT_OK);
    const std::vector<Event> kernels = of_kind(KPT_GPU_KERNEL);
    ASSERT_EQ(kernels.size(), 1u);
    EXPECT_EQ(kernels[0].text, "spin");
    EXPECT_EQ(kernels[0].python.python, 7u);
    EXPECT_EQ(kernels[0].block[0], 32u);
    EXPECT_FALSE(devices.empty());
    printf("waited: %d, device: %s\n", waited, devices.empty() ? "-" : devices[0].c_str());
}

TEST_F(RealGpu, ThreadsStreamsCopiesAndRanges)
{
    enum { EACH = 2000 };
    use_cuda();
    ASSERT_EQ(make(), KPT_OK);
    ASSERT_EQ(start(), KPT_OK) << error();
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < 2; t++)
        threads.emplace_back([this, t] {
            set_python_line(100 + t);
            EXPECT_EQ(CALL(cuCtxSetCurrent, context), CUDA_SUCCESS);
            for (int i = 0; i < EACH; i++)
                EXPECT_EQ(launch(streams[t], 10), CUDA_SUCCESS);
        });
    for (std::thread &thread : threads)
        thread.join();
    set_python_line(300);
    std::vector<char> bytes(4096);
    EXPECT_EQ(CALL_V2(cuMemcpyHtoDAsync, memory, bytes.data(), bytes.size(), streams[0]),
              CUDA_SUCCESS);
    EXPECT_EQ(CALL_V2(cuMemcpyDtoHAsync, bytes.data(), memory, bytes.size(), streams[0]),
              CUDA_SUCCESS);
    EXPECT_EQ(CALL(cuMemsetD8Async, memory, 3, 512, streams[1]), CUDA_SUCCESS);
    EXPECT_EQ(CALL(cuStreamSynchronize, streams[0]), CUDA_SUCCESS);
#ifdef HAS_NVTX
    nvtxRangePushA("outer");
    nvtxMarkA("here");
    nvtxRangePop();
#endif
    ASSERT_EQ(stop(), KPT_OK) << error();
    ASSERT_EQ(collect(), KPT_OK);
    const kpt_gpu_stats s = stats();
    EXPECT_EQ(s.dropped, 0u);
    EXPECT_EQ(s.lost_kernels, 0u);

    std::map<uint32_t, int> by_line;
    std::map<uint32_t, std::set<uint32_t>> streams_of;
    std::set<uint64_t> correlations;
    for (const Event &kernel : of_kind(KPT_GPU_KERNEL)) {
        by_line[kernel.python.python]++;
        streams_of[kernel.python.python].insert(kernel.stream);
        EXPECT_TRUE(correlations.insert(kernel.correlation).second);
        EXPECT_LT(kernel.start_ns, kernel.end_ns);
    }
    EXPECT_EQ(by_line, (std::map<uint32_t, int>{{100, EACH}, {101, EACH}}));
    EXPECT_EQ(streams_of[100].size(), 1u);
    EXPECT_NE(streams_of[100], streams_of[101]);
    std::map<uint64_t, int> calls;
    for (const Event &call : of_kind(KPT_GPU_DRIVER))
        calls[call.correlation]++;
    for (const uint64_t correlation : correlations)
        EXPECT_EQ(calls[correlation], 1);
    const std::vector<Event> copies = of_kind(KPT_GPU_MEMCPY);
    ASSERT_EQ(copies.size(), 2u);
    for (const Event &copy : copies) {
        EXPECT_EQ(copy.bytes, 4096u);
        EXPECT_EQ(copy.python.python, 300u);
    }
    const std::vector<Event> sets = of_kind(KPT_GPU_MEMSET);
    ASSERT_EQ(sets.size(), 1u);
    EXPECT_EQ(sets[0].bytes, 512u);
    EXPECT_EQ(sets[0].value, 3u);
    EXPECT_FALSE(of_kind(KPT_GPU_SYNC).empty());
#ifdef HAS_NVTX
    ASSERT_EQ(of_kind(KPT_GPU_RANGE).size(), 1u);
    EXPECT_EQ(of_kind(KPT_GPU_RANGE)[0].text, "outer");
    EXPECT_EQ(of_kind(KPT_GPU_MARK).size(), 1u);
#endif
}

/* Events of CUDA mark when the stream comes to them: with nothing queued before it the first one is there before the
 * launch has been made, which takes milliseconds the first time. So a kernel runs while all of them are queued. */
TEST_F(RealGpu, TimesAreTheGpus)
{
    CUevent before;
    CUevent after;
    float ms = 0;
    use_cuda();
    ASSERT_EQ(CALL(cuEventCreate, &before, 0), CUDA_SUCCESS);
    ASSERT_EQ(CALL(cuEventCreate, &after, 0), CUDA_SUCCESS);
    ASSERT_EQ(launch(streams[0], 10), CUDA_SUCCESS);
    ASSERT_EQ(make(), KPT_OK);
    ASSERT_EQ(start(), KPT_OK) << error();
    const int64_t began = unix_now();
    ASSERT_EQ(launch(streams[0], 10000000), CUDA_SUCCESS);
    const int64_t returned = unix_now();
    ASSERT_EQ(CALL(cuEventRecord, before, streams[0]), CUDA_SUCCESS);
    ASSERT_EQ(launch(streams[0], 10000000), CUDA_SUCCESS);
    ASSERT_EQ(CALL(cuEventRecord, after, streams[0]), CUDA_SUCCESS);
    const int64_t queued = unix_now();
    ASSERT_EQ(CALL(cuStreamSynchronize, streams[0]), CUDA_SUCCESS);
    const int64_t ended = unix_now();
    ASSERT_EQ(CALL_V2(cuEventElapsedTime, &ms, before, after), CUDA_SUCCESS);
    ASSERT_EQ(stop(), KPT_OK);
    ASSERT_EQ(collect(), KPT_OK);
    std::vector<Event> kernels = of_kind(KPT_GPU_KERNEL);
    ASSERT_EQ(kernels.size(), 2u);
    std::sort(kernels.begin(), kernels.end(),
              [](const Event &a, const Event &b) { return a.start_ns < b.start_ns; });
    ASSERT_LT(queued, kernels[0].end_ns) << "all was queued while the first kernel ran";
    const double took = (double)(kernels[1].end_ns - kernels[1].start_ns) / 1e6;
    EXPECT_NEAR(took, ms, ms * 0.01);
    for (const Event &call : of_kind(KPT_GPU_DRIVER)) {
        if (call.correlation != kernels[0].correlation) continue;
        printf(
            "call: %ld ns after it began, %ld ns before it returned; kernel: %ld ns after the call "
            "began; the next one "
            "%ld ns after its end, and %ld ns before the wait ended; %.3f ms, by events %.3f ms\n",
            (long)(call.start_ns - began), (long)(returned - call.end_ns),
            (long)(kernels[0].start_ns - call.start_ns),
            (long)(kernels[1].start_ns - kernels[0].end_ns), (long)(ended - kernels[1].end_ns),
            took, (double)ms);
        EXPECT_GE(call.start_ns, began - 1000);
        EXPECT_LE(call.end_ns, returned + 1000);
        EXPECT_GE(kernels[0].start_ns, call.start_ns - 1000);
    }
    EXPECT_GE(kernels[1].start_ns, kernels[0].end_ns);
    EXPECT_LE(kernels[1].end_ns, ended + 1000);
}

TEST_F(RealGpu, NothingIsDroppedOfManyLaunches)
{
    const int LAUNCHES = 100000;
    use_cuda();
    int64_t bare = unix_now();
    for (int i = 0; i < LAUNCHES; i++)
        ASSERT_EQ(launch(streams[0], 1), CUDA_SUCCESS);
    ASSERT_EQ(CALL(cuStreamSynchronize, streams[0]), CUDA_SUCCESS);
    bare = unix_now() - bare;
    ASSERT_EQ(make(), KPT_OK);
    ASSERT_EQ(start(), KPT_OK) << error();
    int64_t traced = unix_now();
    for (int i = 0; i < LAUNCHES; i++) {
        set_python_line(1 + (uint32_t)i % 1000);
        ASSERT_EQ(launch(streams[0], 1), CUDA_SUCCESS);
    }
    ASSERT_EQ(CALL(cuStreamSynchronize, streams[0]), CUDA_SUCCESS);
    traced = unix_now() - traced;
    int64_t stopping = unix_now();
    ASSERT_EQ(stop(), KPT_OK);
    stopping = unix_now() - stopping;
    int64_t collecting = unix_now();
    ASSERT_EQ(collect(), KPT_OK);
    collecting = unix_now() - collecting;
    const kpt_gpu_stats s = stats();
    EXPECT_EQ(s.dropped, 0u);
    EXPECT_EQ(s.lost_kernels, 0u);
    std::vector<Event> kernels = of_kind(KPT_GPU_KERNEL);
    ASSERT_EQ(kernels.size(), (size_t)LAUNCHES);
    std::sort(kernels.begin(), kernels.end(),
              [](const Event &a, const Event &b) { return a.correlation < b.correlation; });
    for (int i = 0; i < LAUNCHES; i++)
        ASSERT_EQ(kernels[(size_t)i].python.python, 1 + (uint32_t)i % 1000);
    printf("%d launches: %.0f ns each bare, %.0f ns traced; stop %.1f ms, collect %.1f ms; %.1f MB "
           "held\n",
           LAUNCHES, (double)bare / LAUNCHES, (double)traced / LAUNCHES, (double)stopping / 1e6,
           (double)collecting / 1e6, (double)s.bytes_held / 1e6);
}

TEST_F(RealGpu, OneAfterAnother)
{
    use_cuda();
    for (int round = 0; round < 5; round++) {
        events.clear();
        ASSERT_EQ(make(), KPT_OK);
        ASSERT_EQ(start(), KPT_OK) << error();
        ASSERT_EQ(launch(streams[0], 1), CUDA_SUCCESS);
        ASSERT_EQ(stop(), KPT_OK);
        ASSERT_EQ(launch(streams[0], 1), CUDA_SUCCESS); /* not recorded */
        ASSERT_EQ(collect(), KPT_OK);
        EXPECT_EQ(of_kind(KPT_GPU_KERNEL).size(), 1u);
        ASSERT_EQ(destroy(), KPT_OK);
    }
}
