/* absent_test.cc: what is not there, each time in a process of its own: the libraries are looked for once. */
#include <unistd.h>

#include <cstdlib>

#include "tests/native/gpu/playing.h"

/* Runs on nothing but the plugin; the test decides what is loaded. */
class Absent : public TracingGpu
{
  protected:
    /* What last_error says of a tracer that is made, or that could not be started. */
    void say()
    {
        if (make() == KPT_OK && !(tracer.flags & KPT_OBJECT_NOOP)) (void)start();
        fprintf(stderr, "%s\n", error().c_str());
        _exit(0);
    }
    static void open_driver(int initialised)
    {
        const void *table = open_stand_in(KPT_STAND_IN_CUDA, PLAY_CUDA);
        static_cast<const play_cuda *>(table)->reset(initialised, 1);
    }
    static void SetUpTestSuite()
    {
        GTEST_FLAG_SET(death_test_style, "threadsafe");
    }
};

TEST_F(Absent, NoDriver)
{
    if (access("/dev/nvidiactl", F_OK) == 0) GTEST_SKIP() << "there is one";
    EXPECT_EXIT(say(), ::testing::ExitedWithCode(0), "there is no CUDA driver");
}

TEST_F(Absent, NoCupti)
{
    EXPECT_EXIT(
        {
            setenv("KPYTRACE_CUPTI", "/nonexistent/libcupti.so", 1);
            open_driver(1);
            say();
        },
        ::testing::ExitedWithCode(0), "cannot load CUPTI .KPYTRACE_CUPTI is /nonexistent");
}

TEST_F(Absent, ACuptiThatIsTooOld)
{
    EXPECT_EXIT(
        {
            setenv("KPYTRACE_CUPTI", KPT_STAND_IN_TOO_OLD, 1);
            open_driver(1);
            say();
        },
        ::testing::ExitedWithCode(0), "has no function cuptiActivityRegisterCallbacks");
}

/* The real one, where it was fetched: it says that there is no driver. */
TEST_F(Absent, TheRealCuptiWithoutADriver)
{
    const std::string path = KPT_REAL_CUPTI;
    if (path.empty() || access("/dev/nvidiactl", F_OK) == 0) GTEST_SKIP() << "no such case here";
    EXPECT_EXIT(
        {
            setenv("KPYTRACE_CUPTI", KPT_REAL_CUPTI, 1);
            open_driver(1);
            say();
        },
        ::testing::ExitedWithCode(0), "CUPTI failed to accept a subscriber: ");
}

/* One that is loaded comes before all others. */
TEST_F(Absent, ALoadedCuptiIsTaken)
{
    EXPECT_EXIT(
        {
            unsetenv("KPYTRACE_CUPTI");
            const auto *cupti =
                static_cast<const play_cupti *>(open_stand_in(KPT_STAND_IN_13, PLAY_CUPTI));
            cupti->other_tool(1);
            open_driver(1);
            say();
        },
        ::testing::ExitedWithCode(0), "CUPTI is in use by another tool");
}
