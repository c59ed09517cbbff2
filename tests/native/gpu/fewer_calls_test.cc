/* fewer_calls_test.cc: KPT_GPU_FEWER_CALLS: callbacks record the calls that matter, and CUPTI records none. */
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

#include "tests/native/gpu/playing.h"

/* Kinds of CUPTI's records, by its numbers. */
enum {
    MEMCPY = 1,
    MEMSET = 2,
    DRIVER = 4,
    RUNTIME = 5,
    CONCURRENT_KERNEL = 10,
    NAME = 11,
    MARKER = 12,
    OVERHEAD = 17,
    SYNCHRONIZATION = 38,
    EXTERNAL_CORRELATION = 39
};

class FewerCalls : public Playing
{
  protected:
    FewerCalls()
    {
        args.flags = KPT_GPU_FEWER_CALLS;
    }
    void play(const char *runtime, const char *driver = nullptr, uint32_t result = 0)
    {
        play_call call = {};
        call.runtime = runtime;
        call.driver = driver;
        call.result = result;
        cupti->call(&call);
    }
    static uint64_t bit(int kind)
    {
        return uint64_t{1} << kind;
    }
};

TEST_F(FewerCalls, OfCallsWaitsAndOverheadCuptiMakesNoRecords)
{
    begin();
    const uint64_t kinds = cupti->enabled_kinds();
    for (int kind : {RUNTIME, DRIVER, SYNCHRONIZATION, OVERHEAD, EXTERNAL_CORRELATION})
        EXPECT_FALSE(kinds & bit(kind)) << kind;
    for (int kind : {CONCURRENT_KERNEL, MEMCPY, MEMSET, MARKER, NAME})
        EXPECT_TRUE(kinds & bit(kind)) << kind;
    finish();
}

TEST_F(FewerCalls, OfNvtxThereAreRecordsFromItsFirstCallOn)
{
    begin();
    launch();
    EXPECT_EQ(collect(), KPT_OK);
    EXPECT_TRUE(of_kind(KPT_GPU_RANGE).empty());
    const uint32_t range = cupti->range_begin("first");
    cupti->mark("now");
    cupti->range_end(range);
    finish();
    ASSERT_EQ(of_kind(KPT_GPU_RANGE).size(), 1u);
    EXPECT_EQ(of_kind(KPT_GPU_RANGE)[0].text, "first");
    EXPECT_EQ(of_kind(KPT_GPU_MARK).size(), 1u);
}

TEST_F(FewerCalls, AKernelHasItsCallWithTimesThreadAndLine)
{
    begin();
    set_python_line(42);
    const int64_t before = unix_now();
    const uint32_t correlation = launch();
    const int64_t after = unix_now();
    finish();
    const std::vector<Event> kernels = of_kind(KPT_GPU_KERNEL);
    ASSERT_EQ(kernels.size(), 1u);
    EXPECT_EQ(kernels[0].correlation, correlation);
    EXPECT_EQ(kernels[0].python.python, 42u);
    EXPECT_EQ(kernels[0].os_tid, (uint64_t)syscall(SYS_gettid));
    EXPECT_TRUE(of_kind(KPT_GPU_DRIVER).empty()); /* the driver's part of the same call */
    const std::vector<Event> calls = of_kind(KPT_GPU_RUNTIME);
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_EQ(calls[0].text, "cudaLaunchKernel");
    EXPECT_EQ(calls[0].correlation, correlation);
    EXPECT_EQ(calls[0].python.python, 42u);
    EXPECT_EQ(calls[0].os_tid, (uint64_t)syscall(SYS_gettid));
    EXPECT_EQ(calls[0].cbid, 211u);
    EXPECT_GE(calls[0].start_ns, before - 1000);
    EXPECT_LE(calls[0].start_ns, calls[0].end_ns);
    EXPECT_LE(calls[0].end_ns, after + 1000);
    EXPECT_EQ(stats().events, 2u);
    EXPECT_EQ(stats().lost_kernels, 0u);
    EXPECT_EQ(stats().dropped, 0u);
}

TEST_F(FewerCalls, TheCallsThatWorkWaitOrAllocate)
{
    begin();
    set_python_line(7);
    for (const char *runtime :
         {"cudaMemcpyAsync", "cudaMemsetAsync", "cudaDeviceSynchronize", "cudaGraphLaunch"})
        play(runtime);
    play("cudaMalloc", "cuMemAlloc");
    play(nullptr, "cuMemAlloc");
    play(nullptr, "cuLaunchKernelEx");
    for (const char *runtime : {"cudaSetDevice", "cudaEventRecord"})
        play(runtime, "cuCtxGetCurrent");
    finish();
    std::vector<std::string> calls;
    for (const Event &event : events) {
        calls.push_back(event.text);
        EXPECT_EQ(event.python.python, event.text.find("Alloc") == std::string::npos &&
                                               event.text.find("Malloc") == std::string::npos
                                           ? 7u
                                           : 0u)
            << event.text;
    }
    EXPECT_EQ(calls, (std::vector<std::string>{"cudaMemcpyAsync", "cudaMemsetAsync",
                                               "cudaDeviceSynchronize", "cudaGraphLaunch",
                                               "cudaMalloc", "cuMemAlloc_v2", "cuLaunchKernelEx"}));
}

TEST_F(FewerCalls, AFailedCallHasItsResult)
{
    begin();
    play("cudaLaunchKernel", "cuLaunchKernel", 700);
    finish();
    ASSERT_EQ(of_kind(KPT_GPU_RUNTIME).size(), 1u);
    EXPECT_EQ(of_kind(KPT_GPU_RUNTIME)[0].value, 700u);
    EXPECT_EQ(stats().lost_kernels, 0u);
}

TEST_F(FewerCalls, TheDriversPartMayHaveANumberOfItsOwn)
{
    play_call call = {};
    begin();
    call.runtime = "cudaLaunchKernel";
    call.driver = "cuLaunchKernel";
    call.kernel = "k";
    call.own_numbers = 1;
    set_python_line(6);
    const uint32_t correlation = cupti->call(&call);
    finish();
    ASSERT_EQ(of_kind(KPT_GPU_DRIVER).size(), 1u);
    EXPECT_EQ(of_kind(KPT_GPU_DRIVER)[0].correlation, correlation);
    EXPECT_EQ(of_kind(KPT_GPU_RUNTIME).size(), 1u);
    EXPECT_EQ(stats().lost_kernels, 0u);
}

TEST_F(FewerCalls, WhatDoesNotFitIntoTheBudgetIsCounted)
{
    enum { CALLS = 20000 };
    args.budget_bytes = 64 << 10;
    begin();
    for (int i = 0; i < CALLS; i++)
        play("cudaMalloc");
    finish();
    EXPECT_LT(events.size(), (size_t)CALLS);
    EXPECT_EQ(events.size() + stats().dropped, (size_t)CALLS);
    EXPECT_EQ(events.size(), stats().events);
}

TEST_F(FewerCalls, ThreadsMayCallWhileEventsAreCollected)
{
    enum { THREADS = 3, CALLS = 2000 };
    std::vector<std::thread> threads;
    begin();
    for (int i = 0; i < THREADS; i++)
        threads.emplace_back([this] {
            for (int k = 0; k < CALLS; k++)
                launch();
        });
    for (int i = 0; i < 50; i++)
        EXPECT_EQ(collect(), KPT_OK);
    for (std::thread &thread : threads)
        thread.join();
    finish();
    EXPECT_EQ(of_kind(KPT_GPU_RUNTIME).size(), (size_t)THREADS * CALLS);
    EXPECT_EQ(of_kind(KPT_GPU_KERNEL).size(), (size_t)THREADS * CALLS);
    EXPECT_EQ(stats().dropped, 0u);
}
