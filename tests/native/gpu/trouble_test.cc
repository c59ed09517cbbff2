/* trouble_test.cc: what can go wrong, and that the program does not notice. */
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/native/gpu/playing.h"

using Trouble = Playing;

TEST_F(Trouble, AnotherToolHasCupti)
{
    ASSERT_EQ(make(), KPT_OK);
    cupti->other_tool(1);
    EXPECT_EQ(start(), KPT_E_BUSY);
    EXPECT_NE(error().find("CUPTI is in use by"), std::string::npos) << error();
    EXPECT_EQ(stats().state, 0u);
    EXPECT_EQ(stop(), KPT_E_STATE);
    cupti->other_tool(0);
    EXPECT_EQ(start(), KPT_OK) << error(); /* it may have ended meanwhile */
    finish();
}

TEST_F(Trouble, OneRecordsAtATime)
{
    kpt_gpu_tracer second;
    begin();
    KPT_INIT(&second);
    ASSERT_EQ(maker.make(info.self, &args, &second), KPT_OK);
    EXPECT_EQ(second.ops->start(second.self), KPT_E_BUSY);
    finish();
    EXPECT_EQ(second.ops->start(second.self), KPT_OK);
    EXPECT_EQ(second.ops->destroy(second.self), KPT_OK); /* stops it */
}

/* What threads hold is read to its end before another one may have it. */
TEST_F(Trouble, AnotherOneStartsWhileOneStops)
{
    enum { LAUNCHES = 40000 }; /* more than have room: the stacks of some are released at stop */
    kpt_gpu_tracer second;
    int refused = 0;
    args.budget_bytes = 8 << 20;
    begin();
    KPT_INIT(&second);
    ASSERT_EQ(maker.make(info.self, &args, &second), KPT_OK);
    set_python_line(4);
    for (int i = 0; i < LAUNCHES; i++)
        launch();
    at_release([&] { refused += second.ops->start(second.self) == KPT_E_BUSY; });
    ASSERT_EQ(stop(), KPT_OK);
    EXPECT_EQ(refused, 1);
    EXPECT_EQ(second.ops->start(second.self), KPT_OK);
    EXPECT_EQ(second.ops->destroy(second.self), KPT_OK);
}

TEST_F(Trouble, KernelsThatNeverCome)
{
    play_call taken = {};
    play_call failed = {};
    play_call captured = {};
    play_call capture = {};
    begin();
    taken.runtime = failed.runtime = captured.runtime = "cudaLaunchKernel";
    taken.kernel = failed.kernel = captured.kernel = "k";
    taken.no_kernel = 1;
    failed.result = 1;
    captured.no_kernel = 1;
    cupti->call(&taken);
    cupti->call(&failed);
    capture.runtime = "cudaStreamBeginCapture";
    cupti->call(&capture);
    cupti->call(&captured);
    capture.runtime = "cudaStreamEndCapture";
    cupti->call(&capture);
    launch();
    finish();
    EXPECT_EQ(stats().lost_kernels, 1u); /* a failure and a capture are none */
    ASSERT_EQ(of_kind(KPT_GPU_RUNTIME).size(), 6u);
    EXPECT_EQ(of_kind(KPT_GPU_RUNTIME)[1].value, 1u);
}

TEST_F(Trouble, ACaptureIsNotDisturbedByStop)
{
    play_call capture = {};
    begin();
    capture.runtime = "cudaStreamBeginCapture";
    launch();
    cupti->call(&capture);
    finish();
    EXPECT_EQ(cuda->waits(), 0);
}

TEST_F(Trouble, AContextThatIsGoneIsNotWaitedFor)
{
    begin();
    launch();
    cupti->destroy_context(this);
    finish();
    EXPECT_EQ(cuda->waits(), 0);
}

TEST_F(Trouble, AContextAtTheAddressOfOneThatIsGone)
{
    begin();
    launch();
    cupti->destroy_context(this);
    launch();
    finish();
    EXPECT_EQ(cuda->waits(), 1);
}

TEST_F(Trouble, WhatCuptiDroppedIsCounted)
{
    begin();
    cupti->drop(17);
    launch();
    finish();
    EXPECT_EQ(stats().dropped, 17u);
}

TEST_F(Trouble, BeyondTheBudget)
{
    enum { LAUNCHES = 40000 };
    args.budget_bytes = 6 << 20;
    begin();
    for (int i = 0; i < LAUNCHES; i++)
        launch();
    finish();
    const kpt_gpu_stats s = stats();
    EXPECT_GT(s.dropped, 0u);
    EXPECT_LE(s.bytes_held, args.budget_bytes);
    EXPECT_LT(of_kind(KPT_GPU_KERNEL).size(), (size_t)LAUNCHES);
    EXPECT_EQ(events.size(), s.events);
}

TEST_F(Trouble, WithoutRoomForABuffer)
{
    args.budget_bytes = 1 << 20;
    begin();
    launch();
    finish();
    EXPECT_TRUE(events.empty());
    EXPECT_GE(stats().dropped, 1u);
}

TEST_F(Trouble, EachFunctionOfCuptiMayFail)
{
    static const char *const needed[] = {"cuptiSubscribe", "cuptiActivityRegisterCallbacks",
                                         "cuptiActivityEnable"};
    static const char *const optional[] = {"cuptiUnsubscribe",
                                           "cuptiEnableCallback",
                                           "cuptiSetThreadIdType",
                                           "cuptiActivityDisable",
                                           "cuptiActivityFlushAll",
                                           "cuptiActivityGetNumDroppedRecords",
                                           "cuptiActivityRegisterTimestampCallback",
                                           "cuptiActivityGetNextRecord",
                                           "cuptiActivityEnableRuntimeApi",
                                           "cuptiActivityEnableDriverApi"};
    for (const char *function : needed) {
        ASSERT_EQ(make(), KPT_OK);
        cupti->fail(function, 999);
        EXPECT_EQ(start(), KPT_E_UNSUPPORTED) << function;
        EXPECT_NE(error().find("CUPTI_ERROR_OF_THE_STAND_IN"), std::string::npos) << error();
        cupti->fail(function, 0);
        EXPECT_EQ(start(), KPT_OK) << function << error();
        EXPECT_EQ(destroy(), KPT_OK);
    }
    for (const char *function : optional) {
        cupti->fail(function, 999);
        begin();
        launch();
        finish();
        EXPECT_EQ(destroy(), KPT_OK);
        cupti->fail(function, 0);
    }
    begin(); /* gives back what a flush that failed left */
    finish();
}

TEST_F(Trouble, MemoryMayFailAtEachAllocation)
{
    for (uint64_t nth = 1; nth < 200; nth++) {
        host.alloc_calls = 0;
        host.fail_alloc_at = nth;
        set_python_line(8);
        if (make() == KPT_OK) {
            EXPECT_EQ(start(), KPT_OK);
            launch("_Z1fv");
            cupti->mark("m");
            cupti->range_begin("r");
            cupti->name(5, 1, "n");
            EXPECT_EQ(stop(), KPT_OK);
            const kpt_status status = collect();
            EXPECT_TRUE(status == KPT_OK || status == KPT_E_MEMORY);
            EXPECT_EQ(destroy(), KPT_OK);
        }
        if (host.alloc_calls < nth) break;
    }
    host.fail_alloc_at = 0;
}

TEST_F(Trouble, TheSinkRefuses)
{
    begin();
    launch();
    in_sink = [] { return KPT_E_LIMIT; };
    ASSERT_EQ(stop(), KPT_OK);
    EXPECT_EQ(collect(), KPT_E_LIMIT);
    in_sink = nullptr;
    events.clear();
    EXPECT_EQ(collect(), KPT_OK);
    EXPECT_TRUE(events.empty());
}

TEST_F(Trouble, TheSinkCallsUs)
{
    begin();
    launch();
    in_sink = [this] {
        kpt_gpu_stats s;
        KPT_INIT(&s);
        EXPECT_EQ(stop(), KPT_E_BUSY);
        EXPECT_EQ(tracer.ops->get_stats(tracer.self, &s), KPT_E_BUSY);
        EXPECT_EQ(tracer.ops->destroy(tracer.self), KPT_E_BUSY);
        return KPT_OK;
    };
    EXPECT_EQ(collect(), KPT_OK);
    in_sink = nullptr;
    finish();
}

TEST_F(Trouble, StatesAreChecked)
{
    ASSERT_EQ(make(), KPT_OK);
    EXPECT_EQ(stop(), KPT_E_STATE);
    EXPECT_EQ(collect(), KPT_OK);
    EXPECT_EQ(sink_calls, 1);
    EXPECT_EQ(start(), KPT_OK);
    EXPECT_EQ(start(), KPT_E_STATE);
    EXPECT_EQ(stop(), KPT_OK);
    EXPECT_EQ(stop(), KPT_E_STATE);
    EXPECT_EQ(start(), KPT_E_STATE);
    EXPECT_EQ(stats().state, (uint32_t)KPT_GPU_STOPPED);
}

TEST_F(Trouble, SizesAreChecked)
{
    struct Newer {
        kpt_gpu_args args;
        uint64_t more;
    };
    Newer newer = {args, 7};
    args.struct_size = KPT_GPU_ARGS_V1_SIZE - 1;
    EXPECT_EQ(make(), KPT_E_SIZE);
    EXPECT_EQ(maker.make(info.self, nullptr, &tracer), KPT_E_INVALID);
    newer.args.struct_size = sizeof newer;
    tracer.struct_size = KPT_GPU_TRACER_V1_SIZE - 1;
    EXPECT_EQ(maker.make(info.self, &newer.args, &tracer), KPT_E_SIZE);
    KPT_INIT(&tracer);
    EXPECT_EQ(maker.make(info.self, &newer.args, &tracer), KPT_OK);
}

TEST_F(Trouble, AForkedChildIsSilent)
{
    begin();
    set_python_line(2);
    launch();
    const pid_t child = fork();
    if (child == 0) {
        kpt_gpu_stats s;
        KPT_INIT(&s);
        launch();
        const bool good = tracer.ops->get_stats(tracer.self, &s) == KPT_OK &&
                          s.state == KPT_GPU_STOPPED && stop() == KPT_OK && collect() == KPT_OK &&
                          events.empty() && tracer.ops->destroy(tracer.self) == KPT_OK;
        _exit(good ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    finish();
    EXPECT_EQ(of_kind(KPT_GPU_KERNEL).size(), 1u);
}

TEST_F(Trouble, CudaIsNotUsedYet)
{
    cuda->reset(0, 2);
    begin();
    EXPECT_EQ(stats().state, (uint32_t)KPT_GPU_WAITING);
    EXPECT_NE(getenv("CUDA_INJECTION64_PATH"), nullptr);
    EXPECT_EQ(cupti->subscribed(), 0);
    EXPECT_EQ(cuda->init(), 1);
    EXPECT_EQ(stats().state, (uint32_t)KPT_GPU_RECORDING);
    launch();
    finish();
    EXPECT_EQ(of_kind(KPT_GPU_KERNEL).size(), 1u);
}

TEST_F(Trouble, CudaIsNeverUsed)
{
    cuda->reset(0, 2);
    begin();
    finish();
    EXPECT_TRUE(events.empty());
    EXPECT_EQ(cuda->init(), -1);
}

TEST_F(Trouble, CudaBeginsUnderAnotherTool)
{
    cuda->reset(0, 2);
    begin();
    cupti->other_tool(1);
    EXPECT_EQ(cuda->init(), 1);
    EXPECT_EQ(stats().state, (uint32_t)KPT_GPU_STOPPED);
    EXPECT_EQ(stop(), KPT_E_BUSY);
    EXPECT_NE(error().find("CUPTI is in use by"), std::string::npos) << error();
    EXPECT_EQ(collect(), KPT_OK);
}

TEST_F(Trouble, TheInjectionOfAnotherTool)
{
    cuda->reset(0, 2);
    ASSERT_EQ(make(), KPT_OK);
    setenv("CUDA_INJECTION64_PATH", "/lib/libTheirs.so", 1);
    EXPECT_EQ(start(), KPT_E_BUSY);
    EXPECT_NE(error().find("libTheirs.so"), std::string::npos) << error();
    EXPECT_STREQ(getenv("CUDA_INJECTION64_PATH"), "/lib/libTheirs.so");
    unsetenv("CUDA_INJECTION64_PATH");
}

TEST_F(Trouble, CudaHasNoGpu)
{
    cuda->reset(1, 0);
    ASSERT_EQ(make(), KPT_OK);
    EXPECT_EQ(tracer.flags, (uint32_t)KPT_OBJECT_NOOP);
    EXPECT_NE(error().find("no GPU"), std::string::npos) << error();
    EXPECT_EQ(start(), KPT_OK);
    finish();
    EXPECT_EQ(sink_calls, 1);
    EXPECT_EQ(stats().state, (uint32_t)KPT_GPU_STOPPED);
}
