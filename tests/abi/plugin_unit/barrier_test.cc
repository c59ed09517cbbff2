/* barrier_test.cc: of two threads that each store and then load, at least one sees the other's store. */
#include "core/base/asymmetric_barrier.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <thread>
#include <vector>

namespace
{

/* The two stores, on separate cache lines. */
struct Said {
    alignas(64) uint32_t comes_by = 0;
    alignas(64) uint32_t forbids = 0;
};

/* Both threads wait for each other here, so that the next steps run at the same time. */
void meet(std::atomic<int> &arrived, int round)
{
    arrived++;
    for (int i = 0; arrived < 2 * round; i++)
        if (i > 1000) std::this_thread::yield(); /* there may be one processor */
}

/* How often neither saw the other. */
int unseen(int rounds)
{
    std::vector<Said> said(static_cast<size_t>(rounds));
    std::vector<uint32_t> was_allowed(said.size());
    std::atomic<int> arrived{0};
    int count = 0;
    std::thread other([&] {
        for (int i = 0; i < rounds; i++) {
            Said &s = said[static_cast<size_t>(i)];
            meet(arrived, i + 1);
            kpti_flag_store(&s.comes_by, 1);
            was_allowed[static_cast<size_t>(i)] = !__atomic_load_n(&s.forbids, __ATOMIC_ACQUIRE);
        }
    });
    std::vector<bool> was_alone(said.size());
    for (int i = 0; i < rounds; i++) {
        Said &s = said[static_cast<size_t>(i)];
        meet(arrived, i + 1);
        __atomic_store_n(&s.forbids, 1, __ATOMIC_SEQ_CST);
        kpti_process_barrier();
        was_alone[static_cast<size_t>(i)] = !__atomic_load_n(&s.comes_by, __ATOMIC_SEQ_CST);
    }
    other.join();
    for (size_t i = 0; i < said.size(); i++)
        count += was_allowed[i] && was_alone[i];
    return count;
}

/* From now on the system returns ERROR for membarrier(), as in a sandbox. */
bool forbid(int error)
{
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program = {4, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(Barrier, OneOfTwoSeesTheOther)
{
    if (!kpti_membarrier_register()) GTEST_SKIP() << "this system has none";
    EXPECT_TRUE(kpti_membarrier());
    EXPECT_EQ(unseen(20000), 0);
}

TEST(Barrier, ASandboxMaySayNo)
{
    for (const int error : {ENOSYS, EPERM}) {
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            if (!forbid(error)) _exit(2);
            _exit(kpti_membarrier_register() || kpti_membarrier() || unseen(50) ? 1 : 0);
        }
        int status = -1;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 2) GTEST_SKIP() << "no seccomp here";
        EXPECT_EQ(status, 0);
    }
}

} // namespace
