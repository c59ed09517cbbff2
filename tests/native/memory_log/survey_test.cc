/* survey_test.cc: the regions of memory that blocks were in, and what is alive there. */
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/native/memory_log/packed_history.h"

namespace
{

constexpr uint64_t MEGABYTE = 1 << 20;

TEST(Survey, RegionsJoinWhereTheyTouch)
{
    packed_history h(
        packed_history::steps{step_of(1, 5 * MEGABYTE - 8, 16, KPTI_MEMORY_ALLOC, 1),
                              step_of(2, 6 * MEGABYTE, 3 * MEGABYTE, KPTI_MEMORY_ALLOC, 1),
                              step_of(3, 20 * MEGABYTE, 0, KPTI_MEMORY_FREE, 1),
                              step_of(4, 40 * MEGABYTE, 8, KPTI_MEMORY_ALLOC, 2)});
    const kpti_memory_survey &s = h.look();
    ASSERT_EQ(s.region_count, 3u);
    EXPECT_EQ(s.regions[0].begin, 4 * MEGABYTE);
    EXPECT_EQ(s.regions[0].end, 9 * MEGABYTE);
    EXPECT_EQ(s.regions[0].device, 1u);
    EXPECT_EQ(s.regions[1].begin, 20 * MEGABYTE);
    EXPECT_EQ(s.regions[2].device, 2u);
    EXPECT_EQ(s.entries_of[1], 3u);
    EXPECT_EQ(s.entries_of[2], 1u);
}

/* Also where so many regions are found that they are joined meanwhile. */
TEST(Survey, RegionsHoldEveryBlock)
{
    for (unsigned seed = 0; seed < 30; seed++) {
        std::mt19937_64 random(seed);
        packed_history::steps given;
        for (int i = 0; i < 6000; i++) {
            const uint64_t address = random() % (seed % 2 ? 4000 : 4000000) * 65536;
            const uint64_t size = random() % 50 ? random() % 65536 : random() % 5 * MEGABYTE;
            const bool is_alloc = random() % 3;
            given.push_back(step_of(i, address, is_alloc ? size : 0,
                                    is_alloc ? KPTI_MEMORY_ALLOC : KPTI_MEMORY_FREE,
                                    static_cast<uint32_t>(random() % 2)));
        }
        packed_history h(given);
        const kpti_memory_survey &s = h.look();
        for (uint64_t i = 0; i < s.region_count; i++) {
            EXPECT_EQ(s.regions[i].begin % MEGABYTE, 0u);
            EXPECT_EQ(s.regions[i].end % MEGABYTE, 0u);
            if (i && s.regions[i].device == s.regions[i - 1].device) {
                EXPECT_GT(s.regions[i].begin, s.regions[i - 1].end) << "those that touch are one";
            }
        }
        for (const kpti_memory_entry &e : h.entries()) {
            const kpti_memory_region *first = s.regions;
            const kpti_memory_region *end = first + s.region_count;
            const kpti_memory_region *found = std::upper_bound(
                first, end, e, [](const kpti_memory_entry &a, const kpti_memory_region &b) {
                    return a.device != b.device ? a.device < b.device : a.address < b.begin;
                });
            ASSERT_NE(found, s.regions) << "also one that is gone";
            EXPECT_EQ(found[-1].device, e.device);
            EXPECT_LE(e.address + e.size, found[-1].end);
        }
    }
}

} // namespace
