/* crash_test.cc: the flush before a crash ends the process, and flushes that crash or hang themselves. Each case is
 * a process of its own, which ends with the signal. */
#include "hosts/standalone/background/crash_flush.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace
{

int report = -1; /* the writing end of a pipe */

void say(const char *what)
{
    (void)!write(report, what, 1);
}

void write_to_null()
{
    *reinterpret_cast<volatile int *>(8) = 1;
}

/* How a process ended, and what it reported. */
struct ending {
    int signal;
    std::string said;
};

class Crash : public ::testing::Test
{
  protected:
    void SetUp() override
    {
#ifdef __SANITIZE_THREAD__
        GTEST_SKIP() << "ThreadSanitizer allows no threads in the child of a fork";
#endif
    }

    /* CRASH in a process that has a service with FLUSH, which runs at INTERVAL_NS and before a crash. */
    static ending run(void (*flush)(void *), const std::function<void()> &crash,
                      uint64_t interval_ns = UINT64_MAX, uint32_t chained = 0)
    {
        int ends[2];
        ending result = {0, ""};
        int status = 0;
        char c;
        EXPECT_EQ(pipe(ends), 0);
        const pid_t child = fork();
        if (child == 0) {
            report = ends[1];
            for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT})
                if (!(chained >> number & 1)) (void)signal(number, SIG_DFL); /* a sanitizer's */
            static kpti_service_thread service = {};
            service.interval_ns = interval_ns;
            service.at_interval = flush;
            if (kpti_service_thread_start(&service) != 0) _exit(1);
            kpti_crash_watch(&service, chained);
            crash();
            for (;;)
                (void)pause();
        }
        (void)close(ends[1]);
        while (read(ends[0], &c, 1) == 1)
            result.said += c;
        (void)close(ends[0]);
        EXPECT_EQ(waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFSIGNALED(status)) << status;
        result.signal = WTERMSIG(status);
        return result;
    }
};

TEST_F(Crash, IsFlushedOnceAndEndsWithItsSignal)
{
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT}) {
        const ending e = run([](void *) { say("f"); }, [=] { (void)raise(number); });
        EXPECT_EQ(e.signal, number);
        EXPECT_EQ(e.said, "f");
    }
    const ending e = run([](void *) { say("f"); }, write_to_null);
    EXPECT_EQ(e.signal, SIGSEGV);
    EXPECT_EQ(e.said, "f");
}

TEST_F(Crash, OfTheFlushItselfEndsWithTheFirstSignal)
{
    const ending e = run([](void *) { write_to_null(); }, [] { (void)raise(SIGABRT); });
    EXPECT_EQ(e.signal, SIGABRT);
    const ending f = run([](void *) { abort(); }, write_to_null);
    EXPECT_EQ(f.signal, SIGSEGV);
}

TEST_F(Crash, OfAFlushAtAnInterval)
{
    EXPECT_EQ(run([](void *) { write_to_null(); }, [] {}, 1000000).signal, SIGSEGV);
    EXPECT_EQ(run([](void *) { abort(); }, [] {}, 1000000).signal, SIGABRT);
}

TEST_F(Crash, DoesNotWaitForEver)
{
    const auto hang = [](void *) {
        for (;;)
            (void)pause();
    };
    EXPECT_EQ(run(hang, write_to_null).signal, SIGSEGV);
}

/* It gets what it would have got: the address, on the alternate stack. */
TEST_F(Crash, APreviousHandlerRunsAfterwards)
{
    const auto install = [] {
        struct sigaction action = {};
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        action.sa_sigaction = [](int number, siginfo_t *info, void *) {
            say(info->si_addr == reinterpret_cast<void *>(8) ? "p" : "?");
            (void)signal(number, SIG_DFL);
        };
        (void)sigaction(SIGSEGV, &action, nullptr);
    };
    install();
    const auto flush = [](void *) { say("f"); };
    EXPECT_EQ(run(flush, write_to_null, UINT64_MAX, 1U << SIGSEGV).said, "fp");
    (void)signal(SIGSEGV, SIG_DFL);
    /* The same handler, of a program that was not asked: ours is not there. */
    const ending own = run(flush, [&] {
        static kpti_service_thread second = {};
        install();
        second.interval_ns = UINT64_MAX;
        second.at_interval = [](void *) { say("2"); };
        if (kpti_service_thread_start(&second) != 0) _exit(1);
        kpti_crash_watch(&second, 0);
        write_to_null();
    });
    EXPECT_EQ(own.said, "p");
    EXPECT_EQ(own.signal, SIGSEGV);
}

TEST_F(Crash, UnwatchRestoresTheHandlers)
{
    struct sigaction before;
    struct sigaction after;
    stack_t stack_before;
    stack_t stack_after;
    kpti_service_thread service = {};
    service.interval_ns = UINT64_MAX;
    service.at_interval = [](void *) {};
    ASSERT_EQ(sigaction(SIGSEGV, nullptr, &before), 0);
    ASSERT_EQ(sigaltstack(nullptr, &stack_before), 0);
    ASSERT_EQ(kpti_service_thread_start(&service), 0);
    kpti_crash_watch(&service, 0);
    kpti_crash_unwatch(&service);
    kpti_crash_unwatch(&service);
    (void)kpti_service_thread_end(&service);
    ASSERT_EQ(sigaction(SIGSEGV, nullptr, &after), 0);
    ASSERT_EQ(sigaltstack(nullptr, &stack_after), 0);
    EXPECT_EQ(before.sa_sigaction, after.sa_sigaction);
    EXPECT_EQ(stack_before.ss_flags, stack_after.ss_flags);
}

} // namespace
