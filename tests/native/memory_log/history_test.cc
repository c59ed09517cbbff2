/* history_test.cc: frees find their allocations, and levels are right: against a model, on random programs. */
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <vector>

#include "tests/native/memory_log/logs.h"
#include "tests/native/memory_log/packed_history.h"

namespace
{

using steps = packed_history::steps;

TEST(History, OfNothing)
{
    packed_history h(steps{});
    EXPECT_EQ(h.h.count, 0u);
    EXPECT_TRUE(h.entries().empty());
    EXPECT_EQ(h.look().end.blocks, 0u);
    EXPECT_EQ(h.survey.peak.bytes, 0u);
}

TEST(History, PairsFreesWithAllocations)
{
    packed_history h(
        {alloc(1, 16, 100), alloc(2, 32, 50), release(3, 16), release(4, 32), alloc(5, 16, 7)});
    const auto e = h.entries();
    ASSERT_EQ(e.size(), 5u);
    EXPECT_EQ(e[2].ends, 1);
    EXPECT_EQ(e[2].ended.number, 0u);
    EXPECT_EQ(e[2].size, 100u);
    EXPECT_EQ(e[3].size, 50u);
    EXPECT_EQ(e[4].ends, 0);
    EXPECT_EQ(e[4].time_ns, 5);
    h.look();
    EXPECT_EQ(h.survey.end.bytes, 7u);
    EXPECT_EQ(h.survey.end.blocks, 1u);
    EXPECT_EQ(h.survey.peak.bytes, 150u);
    EXPECT_EQ(h.survey.peak.blocks, 2u);
    EXPECT_EQ(h.survey.peak_after, 2u);
    EXPECT_EQ(h.survey.peak_time_ns, 2);
    EXPECT_EQ(h.entries().size(), 5u) << "it can be read again";
}

/* Three samples of 100 bytes, one in 1,000, stand for more than one of 2,000. */
TEST(History, ThePeakOfSamplesIsThatOfWhatTheyStandFor)
{
    const steps given = {alloc(1, 1000, 100), alloc(2, 2000, 100), alloc(3, 3000, 100),
                         release(4, 1000),    release(5, 2000),    release(6, 3000),
                         alloc(7, 4000, 2000)};
    packed_history sampled(given, 0, 0, 1000);
    packed_history exact(given);
    EXPECT_EQ(sampled.look().peak_after, 3u);
    EXPECT_EQ(sampled.survey.peak.bytes, 2000u) << "of the blocks as they are";
    EXPECT_EQ(exact.look().peak_after, 7u);
}

TEST(History, OfOneMomentStaysInOrder)
{
    steps given;
    for (int i = 0; i < 1000; i++) {
        given.push_back(alloc(5, 16, 10));
        given.push_back(release(5, 16));
    }
    packed_history h(given);
    EXPECT_EQ(h.look().end.blocks, 0u);
    EXPECT_EQ(h.survey.peak.bytes, 10u);
    EXPECT_EQ(h.survey.unseen_frees, 0u);
}

TEST(History, AResizedBlockStays)
{
    packed_history h(steps{alloc(1, 16, 100),
                           step_of(2, 16, 0, KPTI_MEMORY_FREE | KPTI_MEMORY_RESIZED),
                           step_of(2, 16, 300, KPTI_MEMORY_ALLOC | KPTI_MEMORY_RESIZED),
                           step_of(3, 16, 0, KPTI_MEMORY_FREE | KPTI_MEMORY_RESIZED),
                           step_of(3, 1600, 200, KPTI_MEMORY_ALLOC | KPTI_MEMORY_RESIZED)});
    EXPECT_EQ(h.look().end.bytes, 200u);
    EXPECT_EQ(h.survey.peak.bytes, 300u);
    EXPECT_EQ(h.entries()[4].kind, KPTI_MEMORY_ALLOC | KPTI_MEMORY_RESIZED);
}

/* The time of a resized block's end is read before another thread gets its memory, and noted after that. */
TEST(History, AResizeThatIsNotedLateEndsNoNewerBlock)
{
    packed_history h(steps{alloc(1, 16, 100), alloc(7, 16, 30),
                           step_of(5, 16, 0, KPTI_MEMORY_FREE | KPTI_MEMORY_RESIZED),
                           alloc(8, 1600, 200)});
    EXPECT_EQ(h.look().end.bytes, 230u);
    EXPECT_EQ(h.survey.unseen_frees, 0u);
}

TEST(History, FreesOfUnknownBlocksAreKept)
{
    packed_history h(steps{release(1, 16), alloc(2, 16, 5), release(3, 16), release(4, 16)});
    const auto e = h.entries();
    EXPECT_EQ(e[0].size, 0u);
    EXPECT_EQ(e[0].ends, 0);
    EXPECT_EQ(h.look().unseen_frees, 2u);
    EXPECT_EQ(h.survey.end.blocks, 0u);
}

TEST(History, ALostFreeIsSeenByTheNextBlockThere)
{
    packed_history h(steps{alloc(1, 16, 100), alloc(2, 16, 30)});
    EXPECT_EQ(h.entries()[1].ends, 1);
    EXPECT_EQ(h.look().end.bytes, 30u);
    EXPECT_EQ(h.survey.end.blocks, 1u);
    EXPECT_EQ(h.survey.peak.bytes, 100u);
}

TEST(History, OfBlocksOverEachOtherTheNewestIsThere)
{
    packed_history h(steps{alloc(1, 100, 100), alloc(2, 150, 10), alloc(3, 155, 100),
                           alloc(4, 300, 5), alloc(5, 50, 10)});
    EXPECT_EQ(h.look().end.bytes, 115u);
    ASSERT_EQ(h.survey.alive_count, 3u);
    EXPECT_EQ(h.alive(0).address, 50u);
    EXPECT_EQ(h.alive(1).address, 155u);
    EXPECT_EQ(h.alive(2).address, 300u);
}

TEST(History, ALimitLeavesTheLast)
{
    steps given;
    for (int i = 0; i < 100; i++)
        given.push_back(alloc(i, static_cast<uint64_t>(i) * 64, 8));
    packed_history h(given, 10, 5);
    EXPECT_EQ(h.h.count, 10u);
    EXPECT_EQ(h.h.dropped, 95u);
    EXPECT_EQ(h.entries()[0].time_ns, 90);
    EXPECT_EQ(h.entries()[0].index, 0u);
    EXPECT_EQ(h.look().end.blocks, 10u);
}

/* A program that allocates, frees, resizes and forgets to tell, and what is true after each step. */
struct program {
    steps events;
    std::map<uint64_t, uint64_t> live;
    uint64_t bytes = 0;
    uint64_t peak = 0;
    uint64_t unseen = 0;
    std::vector<uint64_t> levels; /* after each entry */

    void put(const kpti_memory_step &e)
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
                put(step_of(time, address, 0, KPTI_MEMORY_FREE | KPTI_MEMORY_RESIZED));
                put(step_of(time, address, size, KPTI_MEMORY_ALLOC | KPTI_MEMORY_RESIZED));
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
        packed_history h(p.events);
        ASSERT_EQ(h.h.count, p.events.size());
        h.look();
        EXPECT_EQ(h.survey.end.bytes, p.bytes) << seed;
        EXPECT_EQ(h.survey.end.blocks, p.live.size()) << seed;
        EXPECT_EQ(h.survey.peak.bytes, p.peak) << seed;
        EXPECT_EQ(h.survey.unseen_frees, p.unseen) << seed;
        kpti_memory_curves curves;
        ASSERT_TRUE(kpti_memory_curves_make(&curves, &h.h));
        const auto all = h.entries();
        for (size_t i = 0; i < all.size(); i++) {
            kpti_memory_curves_take(&curves, &h.h, &all[i]);
            ASSERT_EQ(curves.of_device[0], p.levels[i]) << seed << " " << i;
        }
        kpti_memory_curves_free(&curves);
        auto next = p.live.begin();
        h.look();
        for (uint32_t i = 0; i < h.survey.alive_count; i++, next++) {
            EXPECT_EQ(h.alive(i).address, next->first);
            EXPECT_EQ(kpti_memory_block_size(&h.alive(i)), next->second);
        }
    }
}

/* Blocks anywhere, many frees lost: those that are left don't overlap. */
TEST(History, NeverEndsWithBlocksOverEachOther)
{
    for (unsigned seed = 0; seed < 40; seed++) {
        std::mt19937 random(seed);
        steps given;
        for (int i = 0; i < 500; i++)
            given.push_back(alloc(i, random() % 20000, random() % 200));
        packed_history h(given);
        uint64_t end = 0;
        uint64_t bytes = 0;
        bool newest = false;
        h.look();
        for (uint32_t i = 0; i < h.survey.alive_count; i++) {
            const kpti_memory_block &block = h.alive(i);
            EXPECT_GE(block.address, end) << seed;
            end = block.address + kpti_memory_block_size(&block);
            bytes += kpti_memory_block_size(&block);
            newest = newest || block.number == 499;
        }
        EXPECT_EQ(bytes, h.survey.end.bytes);
        EXPECT_TRUE(newest) << "the newest one";
    }
}

TEST(History, WithoutMemory)
{
    packed_history h(steps{alloc(1, 16, 16), release(2, 16), alloc(3, 32, 16)});
    for (int after = 1; after < 20; after++) {
        kpti_memory_survey survey;
        malloc_fails(after);
        const int made = kpti_memory_survey_make(&survey, &h.h);
        malloc_fails(0);
        kpti_memory_survey_free(&survey);
        if (!made) continue;
        EXPECT_GE(after, 4);
        return;
    }
    ADD_FAILURE();
}

/* A record of names: pools with their number, device type and device index, below 64. */
std::string pools_of(const std::vector<std::array<char, 3>> &pools)
{
    const kpti_memory_record head = {KPTI_MEMORY_NAMES, static_cast<uint32_t>(pools.size()), 0, 0};
    std::string record(reinterpret_cast<const char *>(&head), sizeof head);
    for (const auto &[number, type, index] : pools)
        record += {'P', number, static_cast<char>(type * 2), static_cast<char>(index * 2), 0, 0, 0};
    return record;
}

TEST(History, PoolsOfADeviceShareItsSlot)
{
    packed_history h(0, {pools_of({{9, 1, 0}, {6, 1, 1}, {20, 0, 0}}), pools_of({{5, 1, 0}})});
    ASSERT_EQ(h.opened, KPT_OK);
    const kpti_memory_names &names = h.h.names;
    EXPECT_EQ(names.pools[5].slot, names.pools[9].slot);
    EXPECT_EQ(names.pools[5].space, names.pools[9].space);
    EXPECT_EQ(names.pools[5].device, names.pools[9].device);
    EXPECT_NE(names.pools[5].space, names.pools[6].space);
    EXPECT_EQ(names.pools[20].space, 0u) << "host memory";
    ASSERT_EQ(names.device_count, 7u);
    EXPECT_EQ(names.slot_count, 7u);
    for (uint32_t number : {0, 3, 5, 6, 20}) {
        const kpti_memory_device &device = names.devices[names.pools[number].device];
        EXPECT_EQ(device.slot, names.pools[number].slot) << number;
        EXPECT_EQ(device.space, names.pools[number].space) << number;
    }
}

/* Its device would change under the blocks that are in it. */
TEST(History, APoolIsNamedOnce)
{
    packed_history again(0, {pools_of({{9, 1, 0}}), pools_of({{9, 2, 0}})});
    EXPECT_EQ(again.opened, KPT_E_INVALID);
    packed_history own(0, {pools_of({{0, 1, 0}})});
    EXPECT_EQ(own.opened, KPT_E_INVALID) << "that of a domain of Python's";
}

} // namespace
