/* segments_test.cc: the regions that a device's blocks lie in, and what lives there. */
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <vector>

#include "tests/native/memory_log/logs.h"
#include "writers/memory/memory_segments.h"

namespace
{

constexpr uint64_t MEGABYTE = 1 << 20;

kpti_memory_history history_of(const std::vector<kpti_memory_entry> &given)
{
    kpti_memory_history h;
    auto *copy =
        static_cast<kpti_memory_entry *>(malloc((given.size() + 1) * sizeof(kpti_memory_entry)));
    for (size_t i = 0; i < given.size(); i++) {
        copy[i] = given[i];
        copy[i].time_ns = static_cast<int64_t>(i);
    }
    EXPECT_TRUE(kpti_memory_history_make(&h, copy, given.size(), 0, 0, 0));
    return h;
}

kpti_memory_entry segment_entry(uint64_t address, uint64_t size, uint32_t device, int kind)
{
    kpti_memory_entry e = {};
    e.address = address;
    e.size = size;
    e.device = static_cast<uint16_t>(device);
    e.kind = static_cast<uint16_t>(kind);
    return e;
}

void check(const kpti_memory_segments &s, const kpti_memory_history &h, uint32_t device)
{
    uint64_t blocks = 0;
    uint64_t end = 0;
    for (uint64_t i = 0; i < s.segment_count; i++) {
        const kpti_memory_segment &segment = s.segments[i];
        uint64_t at = segment.begin;
        uint64_t allocated = 0;
        EXPECT_GT(segment.begin + (i == 0), end) << "those that touch are one";
        EXPECT_EQ(segment.begin % MEGABYTE, 0u);
        EXPECT_EQ(segment.end % MEGABYTE, 0u);
        end = segment.end;
        EXPECT_EQ(segment.first, blocks);
        for (uint64_t k = 0; k < segment.count; k++) {
            const kpti_memory_entry &e = h.entries[s.blocks[blocks++]];
            EXPECT_GE(e.address, at);
            at = e.address + e.size;
            allocated += e.size;
        }
        EXPECT_LE(at, segment.end);
        EXPECT_EQ(segment.allocated, allocated);
    }
    EXPECT_EQ(blocks, s.block_count) << "each block lies in a segment";
    for (uint64_t i = 0; i < h.count; i++) {
        const kpti_memory_entry &e = h.entries[i];
        bool inside = e.device != device;
        for (uint64_t k = 0; k < s.segment_count && !inside; k++)
            inside = s.segments[k].begin <= e.address && e.address + e.size <= s.segments[k].end;
        EXPECT_TRUE(inside) << "also one that is gone";
    }
}

TEST(Segments, OfNothing)
{
    kpti_memory_history h = history_of({});
    kpti_memory_segments s;
    ASSERT_TRUE(kpti_memory_segments_find(&s, &h, 0));
    EXPECT_EQ(s.segment_count, 0u);
    kpti_memory_segments_free(&s);
    kpti_memory_history_free(&h);
}

TEST(Segments, JoinWhereTheyTouch)
{
    kpti_memory_history h =
        history_of({segment_entry(5 * MEGABYTE - 8, 16, 1, KPTI_MEMORY_ALLOC),
                    segment_entry(6 * MEGABYTE, 3 * MEGABYTE, 1, KPTI_MEMORY_ALLOC),
                    segment_entry(20 * MEGABYTE, 8, 1, KPTI_MEMORY_FREE),
                    segment_entry(40 * MEGABYTE, 8, 2, KPTI_MEMORY_ALLOC)});
    kpti_memory_segments s;
    ASSERT_TRUE(kpti_memory_segments_find(&s, &h, 1));
    ASSERT_EQ(s.segment_count, 2u);
    EXPECT_EQ(s.segments[0].begin, 4 * MEGABYTE);
    EXPECT_EQ(s.segments[0].end, 9 * MEGABYTE);
    EXPECT_EQ(s.segments[0].allocated, 3 * MEGABYTE + 16);
    EXPECT_EQ(s.segments[1].begin, 20 * MEGABYTE);
    EXPECT_EQ(s.segments[1].count, 0u);
    check(s, h, 1);
    kpti_memory_segments_free(&s);
    kpti_memory_history_free(&h);
}

TEST(Segments, HoldEveryBlockOnRandomPrograms)
{
    for (unsigned seed = 0; seed < 30; seed++) {
        std::mt19937_64 random(seed);
        std::vector<kpti_memory_entry> given;
        for (int i = 0; i < 2000; i++) {
            const uint64_t address = random() % 4000 * 65536;
            const uint64_t size = random() % 50 ? random() % 65536 : random() % 5 * MEGABYTE;
            given.push_back(segment_entry(address, size, random() % 2,
                                          random() % 3 ? KPTI_MEMORY_ALLOC : KPTI_MEMORY_FREE));
        }
        kpti_memory_history h = history_of(given);
        uint64_t blocks = 0;
        for (uint32_t device = 0; device < 2; device++) {
            kpti_memory_segments s;
            ASSERT_TRUE(kpti_memory_segments_find(&s, &h, device));
            check(s, h, device);
            blocks += s.block_count;
            kpti_memory_segments_free(&s);
        }
        EXPECT_EQ(blocks, h.end.blocks);
        kpti_memory_history_free(&h);
    }
}

TEST(Segments, WithoutMemory)
{
    kpti_memory_history h = history_of({segment_entry(16, 16, 0, KPTI_MEMORY_ALLOC)});
    for (int after = 1; after <= 2; after++) {
        kpti_memory_segments s;
        malloc_fails(after);
        EXPECT_FALSE(kpti_memory_segments_find(&s, &h, 0));
        malloc_fails(0);
    }
    kpti_memory_history_free(&h);
}

} // namespace
