/* stack_threads_test.cc: eight threads make, share, read and release stacks at once, and give back what is
 * dead. A stack that somebody holds never reads as another one's. */
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "tests/native/callstacks/tables.h"

namespace
{

constexpr int THREADS = 8;
constexpr int ROUNDS = 20000;
constexpr uint32_t SHARED = 64;

struct held {
    uint32_t stack;
    std::vector<uint32_t> locations; /* innermost first */
};

held make(std::mt19937 &random)
{
    held h{0, std::vector<uint32_t>(random() % 12)};
    for (uint32_t &location : h.locations)
        location = random() % 4 + 1; /* so few that all threads meet on the same nodes */
    h.stack = stack_make(h.locations.data(), static_cast<uint32_t>(h.locations.size()));
    return h;
}

bool reads_right(const held &h)
{
    uint32_t stack = h.stack;
    for (uint32_t location : h.locations) {
        if (!stack || stack_place(stack) != location) return false;
        stack = stack_below(stack);
    }
    return stack == 0;
}

TEST(StackThreads, NeverSeeAnothersStack)
{
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < THREADS; i++)
        threads.emplace_back([&, i] {
            std::mt19937 random(static_cast<unsigned>(i));
            std::vector<held> mine;
            for (int round = 0; round < ROUNDS; round++) {
                mine.push_back(make(random));
                const held &some = mine[random() % mine.size()];
                wrong += !reads_right(some);
                if (random() % 4 == 0) {
                    stack_retain(some.stack);
                    mine.push_back(some);
                }
                while (mine.size() > 20) {
                    const size_t last = random() % mine.size();
                    wrong += !reads_right(mine[last]);
                    stack_release(mine[last].stack);
                    mine[last] = mine.back();
                    mine.pop_back();
                }
                if (random() % 8 == 0) stacks_free_dead(random() % 50);
            }
            for (const held &h : mine)
                stack_release(h.stack);
        });
    for (std::thread &thread : threads)
        thread.join();
    EXPECT_EQ(wrong, 0);
    stacks_free_dead(UINT64_MAX);
    EXPECT_EQ(stacks_nodes(), 0u);
}

/* One thread gathers, another releases: as a profiler's does. */
TEST(StackThreads, ReleaseWhatOthersMade)
{
    std::vector<std::atomic<uint32_t>> box(SHARED);
    std::atomic<bool> done{false};
    std::vector<std::thread> threads;
    threads.emplace_back([&] {
        std::mt19937 random(1);
        for (int round = 0; round < ROUNDS; round++) {
            const uint32_t before = box[random() % SHARED].exchange(make(random).stack);
            stack_release(before);
        }
        done = true;
    });
    for (int i = 0; i < 3; i++)
        threads.emplace_back([&, i] {
            std::mt19937 random(static_cast<unsigned>(i + 2));
            while (!done) {
                stack_release(box[random() % SHARED].exchange(0));
                if (i == 0) stacks_free_dead(16);
            }
        });
    for (std::thread &thread : threads)
        thread.join();
    for (auto &left : box)
        stack_release(left);
    stacks_free_dead(UINT64_MAX);
    EXPECT_EQ(stacks_nodes(), 0u);
}

} // namespace
