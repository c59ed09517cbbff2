/* history_test.cc: frees find their allocations, and levels are right: against a model, on random programs. */
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <vector>

#include "tests/native/memory_log/logs.h"
#include "writers/memory/memory_history.h"

namespace
{

using entries = std::vector<kpti_memory_entry>;

kpti_memory_entry entry(int64_t time, uint64_t address, uint64_t size, int kind)
{
    kpti_memory_entry e = {};
    e.time_ns = time;
    e.address = address;
    e.size = size;
    e.kind = static_cast<uint16_t>(kind);
    return e;
}

kpti_memory_entry alloc(int64_t time, uint64_t address, uint64_t size)
{
    return entry(time, address, size, KPTI_MEMORY_ALLOC);
}

kpti_memory_entry release(int64_t time, uint64_t address)
{
    return entry(time, address, 0, KPTI_MEMORY_FREE);
}

/* The history of GIVEN, in the order that they are given in where times are equal. */
struct history {
    explicit history(const entries &given, uint64_t max = 0, uint64_t dropped = 0,
                     uint64_t sample_bytes = 0)
    {
        auto *copy = static_cast<kpti_memory_entry *>(
            malloc((given.size() + 1) * sizeof(kpti_memory_entry)));
        std::copy(given.begin(), given.end(), copy);
        for (size_t i = 0; i < given.size(); i++)
            copy[i].partner = static_cast<uint32_t>(i);
        EXPECT_TRUE(kpti_memory_history_make(&h, copy, given.size(), dropped, max, sample_bytes));
    }
    ~history()
    {
        kpti_memory_history_free(&h);
    }
    history(const history &) = delete;
    history &operator=(const history &) = delete;
    const kpti_memory_entry &operator[](uint64_t i) const
    {
        return h.entries[i];
    }
    kpti_memory_history h;
};

TEST(History, OfNothing)
{
    const history h({});
    EXPECT_EQ(h.h.count, 0u);
    EXPECT_EQ(h.h.end.blocks, 0u);
    EXPECT_EQ(h.h.peak.bytes, 0u);
}

TEST(History, PairsFreesWithAllocations)
{
    const history h(
        {release(4, 32), alloc(1, 16, 100), release(3, 16), alloc(2, 32, 50), alloc(5, 16, 7)});
    EXPECT_EQ(h[0].partner, 3u);
    EXPECT_EQ(h[2].partner, 1u);
    EXPECT_EQ(h[2].size, 100u);
    EXPECT_EQ(h[3].size, 50u);
    EXPECT_EQ(h[4].partner, 0u);
    EXPECT_EQ(h.h.end.bytes, 7u);
    EXPECT_EQ(h.h.end.blocks, 1u);
    EXPECT_EQ(h.h.peak.bytes, 150u);
    EXPECT_EQ(h.h.peak.blocks, 2u);
    EXPECT_EQ(h.h.peak_after, 2u);
    EXPECT_TRUE(kpti_memory_was_alive(&h.h, 0, 2));
    EXPECT_FALSE(kpti_memory_was_alive(&h.h, 0, 3));
    EXPECT_FALSE(kpti_memory_was_alive(&h.h, 2, 5)) << "a free is no block";
}

/* Three samples of 100 bytes, one in 1,000, stand for more than one of 2,000. */
TEST(History, ThePeakOfSamplesIsThatOfWhatTheyStandFor)
{
    const entries given = {alloc(1, 1000, 100), alloc(2, 2000, 100), alloc(3, 3000, 100),
                           release(4, 1000),    release(5, 2000),    release(6, 3000),
                           alloc(7, 4000, 2000)};
    const history h(given, 0, 0, 1000);
    EXPECT_EQ(h.h.peak_after, 3u);
    EXPECT_EQ(h.h.peak.bytes, 2000u) << "of the blocks as they are";
    EXPECT_EQ(history(given).h.peak_after, 7u);
}

TEST(History, OfOneMomentStaysInOrder)
{
    entries given;
    for (int i = 0; i < 1000; i++) {
        given.push_back(alloc(5, 16, 10));
        given.push_back(release(5, 16));
    }
    const history h(given);
    EXPECT_EQ(h.h.end.blocks, 0u);
    EXPECT_EQ(h.h.peak.bytes, 10u);
    EXPECT_EQ(h.h.unseen_frees, 0u);
}

TEST(History, AResizedBlockStays)
{
    const history h({alloc(1, 16, 100), entry(2, 16, 0, KPTI_MEMORY_FREE | KPTI_MEMORY_RESIZED),
                     entry(2, 16, 300, KPTI_MEMORY_ALLOC | KPTI_MEMORY_RESIZED),
                     entry(3, 16, 0, KPTI_MEMORY_FREE | KPTI_MEMORY_RESIZED),
                     entry(3, 1600, 200, KPTI_MEMORY_ALLOC | KPTI_MEMORY_RESIZED)});
    EXPECT_EQ(h.h.end.bytes, 200u);
    EXPECT_EQ(h.h.peak.bytes, 300u);
}

TEST(History, FreesOfUnknownBlocksAreKept)
{
    const history h({release(1, 16), alloc(2, 16, 5), release(3, 16), release(4, 16)});
    EXPECT_EQ(h.h.unseen_frees, 2u);
    EXPECT_EQ(h[0].size, 0u);
    EXPECT_EQ(h[0].partner, 0u);
    EXPECT_EQ(h.h.end.blocks, 0u);
}

TEST(History, ALostFreeIsSeenByTheNextBlockThere)
{
    const history h({alloc(1, 16, 100), alloc(2, 16, 30)});
    EXPECT_EQ(h.h.end.bytes, 30u);
    EXPECT_EQ(h.h.end.blocks, 1u);
    EXPECT_FALSE(kpti_memory_was_alive(&h.h, 0, 2));
    EXPECT_TRUE(kpti_memory_was_alive(&h.h, 0, 1));
}

TEST(History, OfBlocksOverEachOtherTheNewestIsThere)
{
    const history h({alloc(1, 100, 100), alloc(2, 150, 10), alloc(3, 155, 100), alloc(4, 300, 5),
                     alloc(5, 50, 10)});
    EXPECT_EQ(h.h.end.bytes, 115u);
    EXPECT_FALSE(kpti_memory_was_alive(&h.h, 0, 5));
    EXPECT_FALSE(kpti_memory_was_alive(&h.h, 1, 5));
    EXPECT_TRUE(kpti_memory_was_alive(&h.h, 2, 5));
}

TEST(History, ALimitLeavesTheLast)
{
    entries given;
    for (int i = 99; i >= 0; i--)
        given.push_back(alloc(i, static_cast<uint64_t>(i) * 64, 8));
    const history h(given, 10, 5);
    EXPECT_EQ(h.h.count, 10u);
    EXPECT_EQ(h.h.dropped, 95u);
    EXPECT_EQ(h[0].time_ns, 90);
    EXPECT_EQ(h.h.end.blocks, 10u);
}

/* A program that allocates, frees, resizes and forgets to tell, and what is true after each step. */
struct program {
    entries events;
    std::map<uint64_t, uint64_t> live;
    uint64_t bytes = 0;
    uint64_t peak = 0;
    uint64_t unseen = 0;
    std::vector<uint64_t> levels; /* after each entry */

    void put(const kpti_memory_entry &e)
    {
        events.push_back(e);
        if (e.kind & KPTI_MEMORY_FREE) {
            const auto found = live.find(e.address);
            if (found == live.end()) {
                unseen++;
            } else {
                bytes -= found->second;
                live.erase(found);
            }
        } else {
            bytes += e.size - live[e.address];
            live[e.address] = e.size;
        }
        peak = std::max(peak, bytes);
        levels.push_back(bytes);
    }

    explicit program(unsigned seed)
    {
        std::mt19937 random(seed);
        const uint64_t places = 1 + random() % 300;
        int64_t time = 1;
        for (int i = 0; i < 3000; i++, time += 1 + random() % 3) {
            const uint64_t address = 4096 + random() % places * 64;
            const uint64_t size = random() % 65;
            const bool lives = live.count(address);
            if (lives && random() % 4 == 0) { /* resized */
                put(entry(time, address, 0, KPTI_MEMORY_FREE | KPTI_MEMORY_RESIZED));
                put(entry(time, address, size, KPTI_MEMORY_ALLOC | KPTI_MEMORY_RESIZED));
            } else if (lives && random() % 50) {
                put(release(time, address));
            } else if (random() % 20 == 0) { /* one from before, or twice: it isn't known */
                put(release(time, address));
            } else { /* where one lives, its free was lost */
                put(alloc(time, address, size));
            }
        }
    }
};

TEST(History, IsRightOnRandomPrograms)
{
    for (unsigned seed = 0; seed < 60; seed++) {
        program p(seed);
        const history h(p.events);
        ASSERT_EQ(h.h.count, p.events.size());
        EXPECT_EQ(h.h.end.bytes, p.bytes) << seed;
        EXPECT_EQ(h.h.end.blocks, p.live.size()) << seed;
        EXPECT_EQ(h.h.peak.bytes, p.peak) << seed;
        EXPECT_EQ(h.h.unseen_frees, p.unseen) << seed;
        for (uint64_t after : {h.h.peak_after, h.h.count / 2, h.h.count}) {
            uint64_t bytes = 0;
            for (uint64_t i = 0; i < h.h.count; i++)
                if (kpti_memory_was_alive(&h.h, i, after)) bytes += h[i].size;
            EXPECT_EQ(bytes, after ? p.levels[after - 1] : 0) << seed;
        }
        for (uint64_t i = 0; i < h.h.count; i++) {
            if (!h[i].partner || h[i].kind & KPTI_MEMORY_ALLOC) continue;
            EXPECT_EQ(h[h[i].partner - 1].partner, i + 1) << "partners know each other";
            EXPECT_EQ(h[h[i].partner - 1].address, h[i].address);
            EXPECT_EQ(h[h[i].partner - 1].size, h[i].size);
        }
    }
}

/* The order in which threads' chunks are read is no matter. */
TEST(History, IsTheSameInAnyOrder)
{
    program p(5);
    for (size_t i = 0; i < p.events.size(); i++)
        p.events[i].time_ns = static_cast<int64_t>(i);
    std::shuffle(p.events.begin(), p.events.end(), std::mt19937(1));
    const history h(p.events);
    EXPECT_EQ(h.h.end.bytes, p.bytes);
    EXPECT_EQ(h.h.peak.bytes, p.peak);
}

/* Blocks anywhere, many frees lost: those that are left don't overlap. */
TEST(History, NeverEndsWithBlocksOverEachOther)
{
    for (unsigned seed = 0; seed < 40; seed++) {
        std::mt19937 random(seed);
        entries given;
        std::map<uint64_t, uint64_t> live;
        uint64_t bytes = 0;
        for (int i = 0; i < 500; i++)
            given.push_back(alloc(i, random() % 20000, random() % 200));
        const history h(given);
        for (uint64_t i = 0; i < h.h.count; i++)
            if (kpti_memory_was_alive(&h.h, i, h.h.count) && h[i].size) {
                EXPECT_TRUE(live.emplace(h[i].address, h[i].size).second);
                bytes += h[i].size;
            }
        EXPECT_EQ(bytes, h.h.end.bytes);
        uint64_t end = 0;
        for (const auto &[address, size] : live) {
            EXPECT_GE(address, end) << seed;
            end = address + size;
        }
        EXPECT_TRUE(kpti_memory_was_alive(&h.h, h.h.count - 1, h.h.count)) << "the newest one";
    }
}

TEST(History, WithoutMemory)
{
    for (int after = 1; after <= 2; after++) {
        kpti_memory_history h;
        auto *given = static_cast<kpti_memory_entry *>(calloc(10, sizeof(kpti_memory_entry)));
        for (uint64_t i = 0; i < 10; i++)
            given[i] = alloc(1, i * 16, 16);
        malloc_fails(after);
        const int made = kpti_memory_history_make(&h, given, 10, 0, 0, 0);
        malloc_fails(0);
        EXPECT_FALSE(made);
        EXPECT_EQ(h.entries, nullptr);
    }
}

} // namespace
