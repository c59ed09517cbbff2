/* samples_test.cc: what samples stand for adds up to what there was; which of them live is never forgotten. */
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <thread>
#include <vector>

#include "tests/native/memory_log/logs.h"

namespace
{

/* Sizes as programs have them: most are small, some are not. */
uint64_t size_of(std::mt19937_64 &random)
{
    const uint64_t kind = random() % 100;
    if (kind < 80) return 16 + random() % 500;
    return kind < 98 ? 1 + random() % 20000 : 1 + random() % 1000000;
}

TEST(Samples, AddUpToWhatThereWas)
{
    for (uint64_t mean : {UINT64_C(64), UINT64_C(4096), UINT64_C(65536)}) {
        std::mt19937_64 random(7);
        double bytes = 0;
        double blocks = 0;
        double bytes_there = 0;
        const uint64_t count = mean > 10000 ? 2000000 : 400000;
        sample_seed(mean);
        for (uint64_t i = 0; i < count; i++) {
            const uint64_t size = size_of(random);
            bytes_there += static_cast<double>(size);
            if (!sample_takes(size, mean)) continue;
            bytes += kpti_memory_weight(size, mean) * static_cast<double>(size);
            blocks += kpti_memory_weight(size, mean);
        }
        EXPECT_NEAR(bytes / bytes_there, 1, 0.05) << mean;
        EXPECT_NEAR(blocks / static_cast<double>(count), 1, 0.05) << mean;
    }
}

/* The first block of a thread is as good as any other: with many short threads it would be all. */
TEST(Samples, TheFirstOneOfAThreadIsLeftToChance)
{
    int taken = 0;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        sample_seed(seed);
        taken += sample_takes(100, 1000);
    }
    EXPECT_NEAR(taken / 2000.0, 1 / kpti_memory_weight(100, 1000), 0.03);
}

/* A log does not wait for what one before it had chosen with a larger mean. */
TEST(Samples, ALogBeginsAnew)
{
    kpti_memory_log *log = log_make(0, 1000);
    int taken = 0;
    sample_seed(1);
    (void)sample_takes(1, UINT64_C(1) << 60);
    ASSERT_TRUE(log_begin(log));
    log_end(log);
    log_free(log);
    for (int i = 0; i < 10000; i++)
        taken += sample_takes(100, 1000);
    EXPECT_NEAR(taken, 10000 / kpti_memory_weight(100, 1000), 100);
}

TEST(Samples, ABlockThatIsLargeIsAlwaysTaken)
{
    sample_seed(3);
    for (int i = 0; i < 1000; i++)
        EXPECT_TRUE(sample_takes(100000, 1000));
    EXPECT_NEAR(kpti_memory_weight(100000, 1000), 1, 1e-9);
    EXPECT_EQ(kpti_memory_weight(0, 1000), 1);
    EXPECT_EQ(kpti_memory_weight(1000, 0), 1);
}

/* Against a set; addresses are few, so that they come again. */
void add_and_remove(uint64_t base, unsigned seed, int rounds)
{
    std::mt19937_64 random(seed);
    std::set<uint64_t> live;
    for (int i = 0; i < rounds; i++) {
        const uint64_t address = base + random() % 30000 * 16;
        if (random() % 2) {
            ASSERT_TRUE(sample_add(address));
            live.insert(address);
        } else {
            ASSERT_TRUE(!live.count(address) || sample_may_live(address));
            ASSERT_EQ(sample_remove(address) != 0, live.erase(address) != 0);
        }
        if (i % 10000) continue;
        for (uint64_t each : live)
            ASSERT_TRUE(sample_may_live(each));
    }
    for (uint64_t each : live) {
        ASSERT_TRUE(sample_may_live(each));
        ASSERT_TRUE(sample_remove(each));
    }
}

TEST(Samples, LiveOnesAreKnown)
{
    samples_clear();
    add_and_remove(0x100000, 1, 200000);
}

TEST(Samples, LiveOnesAreKnownToThreads)
{
    std::vector<std::thread> threads;
    samples_clear();
    for (unsigned i = 0; i < 6; i++)
        threads.emplace_back(add_and_remove, UINT64_C(0x1000000) * (i + 1), i, 60000);
    for (std::thread &thread : threads)
        thread.join();
}

TEST(Samples, AreGoneAfterClear)
{
    for (uint64_t i = 1; i < 5000; i++)
        sample_add(i * 16);
    samples_clear();
    for (uint64_t i = 1; i < 5000; i++) {
        ASSERT_FALSE(sample_may_live(i * 16));
        ASSERT_FALSE(sample_remove(i * 16));
    }
}

TEST(Samples, WithoutMemoryNoneIsAdded)
{
    samples_clear();
    malloc_fails(1);
    EXPECT_FALSE(sample_add(16));
    EXPECT_FALSE(sample_remove(16));
    malloc_fails(0);
    EXPECT_TRUE(sample_add(16));
    malloc_fails(1); /* the table is full one day, and the last slots do until then */
    uint64_t added = 1;
    while (sample_add(16 * (added + 1)))
        added++;
    malloc_fails(0);
    EXPECT_GT(added, 500u);
    for (uint64_t i = 1; i <= added; i++)
        ASSERT_TRUE(sample_remove(16 * i));
    EXPECT_TRUE(sample_add(16));
    samples_clear();
}

} // namespace
