/* log_threads_test.cc: the log with threads that are born, record and end meanwhile. */
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "tests/native/memory_log/logs.h"

namespace
{

constexpr int LOGGING_THREADS = 8;
constexpr uint64_t EACH = 4 * LOG_CHUNK + 100;

using sequences = std::map<uint64_t, std::vector<uint64_t>>;

/* Addresses by the stack, which is the number of a thread here. */
sequences by_thread(const log_content &content)
{
    sequences found;
    for (uint64_t i = 0; i < content.count; i++)
        found[content.events[i].stack].push_back(content.events[i].address);
    return found;
}

void note_all(uint32_t thread, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        log_note(i, i, 8, KPTI_MEMORY_ALLOC, thread);
}

void run(int count, uint64_t each)
{
    std::vector<std::thread> threads;
    for (int i = 0; i < count; i++)
        threads.emplace_back(note_all, static_cast<uint32_t>(i), each);
    for (std::thread &thread : threads)
        thread.join();
}

class LogThreads : public testing::Test
{
  protected:
    void make(uint64_t max)
    {
        log = log_make(max, 0);
        ASSERT_TRUE(log);
        ASSERT_TRUE(log_begin(log));
    }
    void TearDown() override
    {
        log_end(log);
        log_free(log);
    }
    kpti_memory_log *log = nullptr;
};

TEST_F(LogThreads, EachHasItsOwnInOrder)
{
    make(0);
    run(LOGGING_THREADS, EACH);
    const log_content content = log_read(log);
    EXPECT_EQ(content.count, LOGGING_THREADS * EACH);
    for (const auto &[thread, addresses] : by_thread(content)) {
        ASSERT_EQ(addresses.size(), EACH) << thread;
        for (uint64_t i = 0; i < EACH; i++)
            ASSERT_EQ(addresses[i], i);
    }
    log_content_free(content);
}

/* A thread loses its first events, and all that are lost are counted. */
TEST_F(LogThreads, ALimitCountsExactly)
{
    make(3000);
    run(LOGGING_THREADS, EACH);
    const log_content content = log_read(log);
    EXPECT_EQ(content.count + content.dropped, LOGGING_THREADS * EACH);
    EXPECT_GE(content.count, 3000u);
    for (const auto &[thread, addresses] : by_thread(content))
        for (uint64_t i = 1; i < addresses.size(); i++)
            ASSERT_EQ(addresses[i], addresses[i - 1] + 1) << thread;
    log_content_free(content);
}

/* Threads that have said little don't take the room of one that says much. */
TEST_F(LogThreads, IdleOnesTakeNothingFromTheLimit)
{
    std::atomic<int> ready{0};
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    make(5000);
    for (int i = 1; i < LOGGING_THREADS; i++)
        threads.emplace_back([&, i] {
            note_all(static_cast<uint32_t>(i), 1);
            ready++;
            while (!over)
                std::this_thread::yield();
        });
    while (ready < LOGGING_THREADS - 1)
        std::this_thread::yield();
    note_all(0, 10 * LOG_CHUNK + 3);
    const log_content content = log_read(log);
    EXPECT_GE(by_thread(content)[0].size(), 5000u);
    EXPECT_EQ(by_thread(content)[0].back(), 10 * LOG_CHUNK + 2u);
    log_content_free(content);
    over = true;
    for (std::thread &thread : threads)
        thread.join();
}

TEST_F(LogThreads, ThoseThatEndLeaveWhatTheySaid)
{
    make(500);
    for (uint32_t i = 0; i < 200; i++)
        std::thread(note_all, i, 10).join();
    const log_content content = log_read(log);
    EXPECT_EQ(content.count + content.dropped, 2000u);
    EXPECT_GE(content.count, 500u);
    EXPECT_LE(content.count, 520u);
    EXPECT_EQ(by_thread(content).count(199), 1u);
    log_content_free(content);
}

TEST_F(LogThreads, EndWaitsForThoseInside)
{
    make(0);
    for (int round = 0; round < 20; round++) {
        std::atomic<bool> inside{false};
        std::atomic<bool> go{false};
        std::atomic<bool> appended{false};
        std::thread appends([&] {
            ASSERT_TRUE(log_enter());
            inside = true;
            while (!go)
                std::this_thread::yield();
            log_append(1, 1, 1, KPTI_MEMORY_ALLOC, 0);
            appended = true;
            log_leave();
        });
        while (!inside)
            std::this_thread::yield();
        std::thread ends([&] {
            log_end(log);
            EXPECT_TRUE(appended);
        });
        for (int i = 0; i < 100; i++)
            std::this_thread::yield();
        go = true;
        ends.join();
        appends.join();
        EXPECT_FALSE(log_enter());
        ASSERT_TRUE(log_begin(log));
    }
}

TEST_F(LogThreads, ACopyOfARunningLogIsWhole)
{
    std::atomic<int> running{LOGGING_THREADS};
    std::vector<std::thread> threads;
    uint64_t last = 0;
    make(0);
    for (uint32_t i = 0; i < LOGGING_THREADS; i++)
        threads.emplace_back([&, i] {
            note_all(i, EACH);
            running--;
        });
    while (running) {
        const log_content content = log_read(log);
        EXPECT_GE(content.count, last);
        last = content.count;
        for (const auto &[thread, addresses] : by_thread(content))
            for (uint64_t i = 0; i < addresses.size(); i++)
                ASSERT_EQ(addresses[i], i) << thread;
        log_content_free(content);
    }
    for (std::thread &thread : threads)
        thread.join();
}

/* Threads go on with the next log while the one before is freed, stopped and begun. */
TEST_F(LogThreads, LogsComeAndGo)
{
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    make(0);
    for (uint32_t i = 0; i < 4; i++)
        threads.emplace_back([&, i] {
            while (!over)
                note_all(i, 100);
        });
    for (int i = 0; i < 40; i++) {
        kpti_memory_log *before = log;
        log_end(log);
        make(static_cast<uint64_t>(i % 3) * 1000);
        for (int k = 0; k < 2; k++)
            std::this_thread::yield();
        log_free(before);
        log_content_free(log_read(log));
    }
    over = true;
    for (std::thread &thread : threads)
        thread.join();
}

} // namespace
