/* record_test.cc: each kind of event, and what belongs together. */
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

#include "tests/native/gpu/playing.h"

using Records = Playing;

TEST_F(Records, AKernelHasItsCallItsThreadAndItsLine)
{
    begin();
    EXPECT_EQ(stats().state, (uint32_t)KPT_GPU_RECORDING);
    set_python_line(42);
    const int64_t before = unix_now();
    const uint32_t correlation = launch("_Z3addPfS_i", 13);
    const int64_t after = unix_now();
    finish();
    const std::vector<Event> kernels = of_kind(KPT_GPU_KERNEL);
    ASSERT_EQ(kernels.size(), 1u);
    const Event &k = kernels[0];
    EXPECT_EQ(k.text, "add(float*, float*, int)");
    EXPECT_EQ(k.correlation, correlation);
    EXPECT_EQ(k.python.python, 42u);
    EXPECT_EQ(k.os_tid, (uint64_t)syscall(SYS_gettid));
    EXPECT_EQ(k.device, 0u);
    EXPECT_EQ(k.context, 1u);
    EXPECT_EQ(k.stream, 13u);
    EXPECT_EQ(k.flags, 0u);
    EXPECT_GE(k.start_ns, before - 1000);
    EXPECT_LE(k.start_ns, after + 1000);
    EXPECT_EQ(k.end_ns - k.start_ns, 1000);
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_EQ(k.grid[i], i + 1);
        EXPECT_EQ(k.block[i], i + 4);
    }
    EXPECT_EQ(k.registers, 32u);
    EXPECT_EQ(k.shared_static_bytes, 100u);
    EXPECT_EQ(k.shared_dynamic_bytes, 200u);
    EXPECT_EQ(k.local_bytes, 16u);

    /* The call of the runtime, and not once more that of the driver under it. */
    EXPECT_TRUE(of_kind(KPT_GPU_DRIVER).empty());
    const std::vector<Event> calls = of_kind(KPT_GPU_RUNTIME);
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_EQ(calls[0].text, "cudaLaunchKernel");
    EXPECT_EQ(calls[0].correlation, correlation);
    EXPECT_EQ(calls[0].python.python, 42u);
    EXPECT_EQ(calls[0].os_tid, (uint64_t)syscall(SYS_gettid));
    EXPECT_EQ(calls[0].cbid, 211u);
    EXPECT_EQ(calls[0].device, KPT_GPU_NONE);
    EXPECT_EQ(devices, (std::vector<std::string>{"Stand-in 0", "Stand-in 1"}));
    EXPECT_EQ(stats().events, 2u);
    EXPECT_EQ(stats().lost_kernels, 0u);
    EXPECT_EQ(stats().dropped, 0u);
    EXPECT_EQ(cuda->waits(), 1);
}

TEST_F(Records, ACallOfTheDriverAlone)
{
    play_call call = {};
    begin();
    call.driver = "cuLaunchKernelEx";
    call.kernel = "not mangled";
    set_python_line(5);
    cupti->call(&call);
    finish();
    ASSERT_EQ(of_kind(KPT_GPU_DRIVER).size(), 1u);
    EXPECT_EQ(of_kind(KPT_GPU_DRIVER)[0].text, "cuLaunchKernelEx");
    EXPECT_EQ(of_kind(KPT_GPU_DRIVER)[0].python.python, 5u);
    ASSERT_EQ(of_kind(KPT_GPU_KERNEL).size(), 1u);
    EXPECT_EQ(of_kind(KPT_GPU_KERNEL)[0].text, "not mangled");
    EXPECT_EQ(of_kind(KPT_GPU_KERNEL)[0].python.python, 5u);
}

TEST_F(Records, TheDriversPartMayHaveANumberOfItsOwn)
{
    play_call call = {};
    begin();
    call.runtime = "cudaLaunchKernel";
    call.driver = "cuLaunchKernel";
    call.kernel = "k";
    call.own_numbers = 1;
    set_python_line(6);
    cupti->call(&call);
    finish();
    ASSERT_EQ(of_kind(KPT_GPU_KERNEL).size(), 1u);
    EXPECT_EQ(of_kind(KPT_GPU_KERNEL)[0].python.python, 6u);
    EXPECT_EQ(stats().lost_kernels, 0u);
}

TEST_F(Records, DullCallsAreLeftOut)
{
    play_call call = {};
    begin();
    call.runtime = "cudaSetDevice";
    call.driver = "cuCtxGetCurrent";
    cupti->call(&call);
    finish();
    EXPECT_TRUE(events.empty());
    EXPECT_EQ(stats().events, 0u);
}

TEST_F(Records, CopiesSetsAndWaits)
{
    play_call copy = {};
    play_call peer = {};
    play_call set = {};
    play_call wait = {};
    begin();
    copy.runtime = "cudaMemcpyAsync";
    copy.copy_bytes = 4096;
    copy.copy_kind = 1;
    copy.stream = 3;
    peer.runtime = "cudaMemcpyAsync";
    peer.copy_bytes = 64;
    peer.copy_kind = 10;
    set.runtime = "cudaMemsetAsync";
    set.set_bytes = 12;
    wait.runtime = "cudaDeviceSynchronize";
    wait.sync_type = 4;
    set_python_line(9);
    for (const play_call *call : {&copy, &peer, &set, &wait})
        cupti->call(call);
    finish();
    const std::vector<Event> copies = of_kind(KPT_GPU_MEMCPY);
    ASSERT_EQ(copies.size(), 2u);
    EXPECT_EQ(copies[0].bytes, 4096u);
    EXPECT_EQ(copies[0].copy_kind, 1u);
    EXPECT_EQ(copies[0].source_kind, 2u);
    EXPECT_EQ(copies[0].target_kind, 3u);
    EXPECT_EQ(copies[0].flags, (uint16_t)KPT_GPU_ASYNC);
    EXPECT_EQ(copies[0].stream, 3u);
    EXPECT_EQ(copies[0].python.python, 9u);
    EXPECT_EQ(copies[1].copy_kind, 10u);
    EXPECT_EQ(copies[1].flags, 0u);
    const std::vector<Event> sets = of_kind(KPT_GPU_MEMSET);
    ASSERT_EQ(sets.size(), 1u);
    EXPECT_EQ(sets[0].bytes, 12u);
    EXPECT_EQ(sets[0].value, 7u);
    EXPECT_EQ(sets[0].target_kind, 3u);
    const std::vector<Event> waits = of_kind(KPT_GPU_SYNC);
    ASSERT_EQ(waits.size(), 1u);
    EXPECT_EQ(waits[0].sync_kind, 4u);
    EXPECT_EQ(waits[0].stream, KPT_GPU_NONE); /* in the words of either CUPTI */
    EXPECT_EQ(waits[0].device, 0u);           /* known by the context */
    EXPECT_EQ(waits[0].event, 0u);
    EXPECT_EQ(waits[0].python.python, 9u);
}

TEST_F(Records, GraphsOverheadAndExternalNumbers)
{
    play_call graph = {};
    begin();
    graph.runtime = "cudaGraphLaunch";
    graph.kernel = "g";
    graph.graph = 5;
    cupti->external(1234567890123);
    cupti->call(&graph);
    cupti->external(0);
    cupti->overhead(1 << 16);
    finish();
    ASSERT_EQ(of_kind(KPT_GPU_KERNEL).size(), 1u);
    EXPECT_EQ(of_kind(KPT_GPU_KERNEL)[0].flags, (uint16_t)KPT_GPU_GRAPH);
    EXPECT_EQ(of_kind(KPT_GPU_KERNEL)[0].graph, 5u);
    EXPECT_EQ(of_kind(KPT_GPU_KERNEL)[0].external, 1234567890123u);
    EXPECT_EQ(of_kind(KPT_GPU_RUNTIME)[0].external, 1234567890123u);
    ASSERT_EQ(of_kind(KPT_GPU_OVERHEAD).size(), 1u);
    EXPECT_EQ(of_kind(KPT_GPU_OVERHEAD)[0].text, "Activity Buffer Flush");
    EXPECT_EQ(of_kind(KPT_GPU_OVERHEAD)[0].os_tid, 77u);
}

TEST_F(Records, RangesMarksAndNames)
{
    begin();
    const uint32_t outer = cupti->range_begin("outer");
    const uint32_t inner = cupti->range_begin("inner");
    cupti->mark("now");
    cupti->range_end(inner);
    cupti->range_end(9999); /* began before the recording */
    cupti->name(3, 1, "the second GPU");
    cupti->name(5, 13, "copies");
    ASSERT_EQ(collect(), KPT_OK); /* while it goes on: the inner one is finished */
    ASSERT_EQ(of_kind(KPT_GPU_RANGE).size(), 1u);
    EXPECT_EQ(of_kind(KPT_GPU_RANGE)[0].text, "inner");
    cupti->range_end(outer);
    cupti->range_begin("open");
    finish();
    const std::vector<Event> ranges = of_kind(KPT_GPU_RANGE);
    ASSERT_EQ(ranges.size(), 3u);
    EXPECT_EQ(ranges[1].text, "outer");
    EXPECT_LE(ranges[1].start_ns, ranges[0].start_ns);
    EXPECT_GE(ranges[1].end_ns, ranges[0].end_ns);
    EXPECT_EQ(ranges[1].os_tid, (uint64_t)syscall(SYS_gettid));
    EXPECT_EQ(ranges[2].text, "open");
    EXPECT_EQ(ranges[2].flags, (uint16_t)KPT_GPU_UNENDED);
    EXPECT_GE(ranges[2].end_ns, ranges[2].start_ns);
    ASSERT_EQ(of_kind(KPT_GPU_MARK).size(), 1u);
    EXPECT_EQ(of_kind(KPT_GPU_MARK)[0].start_ns, of_kind(KPT_GPU_MARK)[0].end_ns);
    EXPECT_EQ((names[{KPT_GPU_NAMES_DEVICE, 1}]), "the second GPU");
    EXPECT_EQ((names[{KPT_GPU_NAMES_STREAM, 13}]), "copies");
}

TEST_F(Records, ThreadsThatCallAtOnce)
{
    enum { THREADS = 8, EACH = 500 };
    std::vector<std::thread> threads;
    begin();
    for (uint32_t t = 0; t < THREADS; t++)
        threads.emplace_back([this, t] {
            set_python_line(t + 1);
            for (int i = 0; i < EACH; i++)
                launch("k", t);
        });
    for (int i = 0; i < 20; i++)
        EXPECT_EQ(collect(), KPT_OK);
    for (std::thread &thread : threads)
        thread.join();
    finish();
    const std::vector<Event> kernels = of_kind(KPT_GPU_KERNEL);
    ASSERT_EQ(kernels.size(), (size_t)THREADS * EACH);
    for (const Event &kernel : kernels)
        EXPECT_EQ(kernel.python.python, kernel.stream + 1);
    EXPECT_EQ(stats().lost_kernels, 0u);
    EXPECT_EQ(stats().dropped, 0u);
}

TEST_F(Records, OneAfterAnother)
{
    for (int round = 0; round < 5; round++) {
        events.clear();
        begin();
        set_python_line(3);
        launch();
        finish();
        launch(); /* not recorded */
        EXPECT_EQ(of_kind(KPT_GPU_KERNEL).size(), 1u);
        ASSERT_EQ(destroy(), KPT_OK);
    }
}

TEST_F(Records, WithoutStacks)
{
    args.tracebacks = nullptr;
    begin();
    set_python_line(3);
    launch();
    finish();
    ASSERT_EQ(of_kind(KPT_GPU_KERNEL).size(), 1u);
    EXPECT_EQ(of_kind(KPT_GPU_KERNEL)[0].python.python, 0u);
}
