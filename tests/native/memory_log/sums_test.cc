/* sums_test.cc: live bytes over time, at moments and of temporary blocks: the same as those of a simple model, in bounded
 * space. */
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <random>
#include <sstream>
#include <vector>

#include "tests/native/memory_log/logs.h"
#include "tests/native/memory_log/packed_history.h"
#include "writers/memory/memory_aggregate.h"
#include "writers/memory/memory_tables.h"

namespace
{

/* Blocks of a thread by address, which are allocated and freed at random. */
packed_history::steps random_steps(unsigned seed, int count, int64_t apart)
{
    std::mt19937_64 random(seed);
    packed_history::steps given;
    int64_t time = 0;
    for (int i = 0; i < count; i++) {
        const uint64_t address = 4096 + random() % 300 * 4096;
        kpti_memory_step step =
            random() % 3 ? alloc(time, address, 1 + random() % 4000) : release(time, address);
        step.os_tid = 7;
        step.pool = static_cast<uint16_t>(random() % 3);
        given.push_back(step);
        time += static_cast<int64_t>(random() % 100 ? random() % 200 : random() % 20000) * apart;
    }
    return given;
}

struct summed {
    explicit summed(packed_history &of, int with_moments = 1)
    {
        EXPECT_TRUE(kpti_memory_tables_read(&of.h, with_moments, &s));
    }
    ~summed()
    {
        kpti_memory_sums_free(&s);
    }
    summed(const summed &) = delete;
    summed &operator=(const summed &) = delete;

    /* The live bytes that a moment has. */
    int64_t bytes_at(uint32_t moment) const
    {
        int64_t sum = 0;
        for (uint64_t i = 0; i < s.moments.moments[moment].end; i++)
            sum += s.moments.changes[i].bytes;
        return sum;
    }
    kpti_memory_sums s;
};

/* Live bytes after each entry, by time since the begin. */
std::vector<std::pair<uint64_t, int64_t>> levels(packed_history &h)
{
    std::vector<std::pair<uint64_t, int64_t>> found{{0, 0}};
    int64_t now = 0;
    for (const kpti_memory_entry &e : h.entries()) {
        if (e.ends) now -= static_cast<int64_t>(kpti_memory_block_size(&e.ended));
        if (e.kind & KPTI_MEMORY_ALLOC) now += static_cast<int64_t>(e.size);
        found.emplace_back(static_cast<uint64_t>(e.time_ns), now);
    }
    return found;
}

int64_t level_at(const std::vector<std::pair<uint64_t, int64_t>> &all, uint64_t time)
{
    auto after = std::upper_bound(all.begin(), all.end(), time,
                                  [](uint64_t t, const auto &level) { return t < level.first; });
    return std::prev(after)->second;
}

TEST(Sums, MomentsHaveTheLevelsOfTheirTime)
{
    for (unsigned seed = 0; seed < 12; seed++) { /* from one moment to many more than fit */
        packed_history h(random_steps(seed, 4000, int64_t(1) << (seed * 2)));
        const auto all = levels(h);
        summed sums(h);
        const kpti_memory_moments &m = sums.s.moments;
        ASSERT_GE(m.count, 1u);
        ASSERT_LE(m.count, uint32_t(KPTI_MOMENTS));
        EXPECT_EQ(m.moments[m.count - 1].since_ns, all.back().first);
        for (uint32_t i = 0; i < m.count; i++)
            EXPECT_EQ(sums.bytes_at(i), level_at(all, m.moments[i].since_ns)) << seed << " " << i;
        /* Between two moments that are far apart nothing changes. */
        for (uint32_t i = 0; i + 1 < m.count; i++) {
            const uint64_t apart = m.moments[i + 1].since_ns - m.moments[i].since_ns;
            if (apart <= m.step_ns) continue;
            EXPECT_EQ(sums.bytes_at(i), level_at(all, m.moments[i + 1].since_ns - m.step_ns))
                << seed << " " << i;
        }
    }
}

TEST(Sums, OneMomentIsExact)
{
    packed_history h(random_steps(1, 2000, 100));
    const auto all = levels(h);
    for (size_t i = 0; i < all.size(); i += 97) {
        h.h.wanted = {1, static_cast<int64_t>(all[i].first), 0};
        summed sums(h);
        ASSERT_EQ(sums.s.moments.count, 1u);
        EXPECT_EQ(sums.bytes_at(0), level_at(all, all[i].first));
    }
}

TEST(Sums, TheSeriesIsBoundedAndHasTheMost)
{
    for (unsigned seed = 0; seed < 12; seed++) {
        packed_history h(random_steps(seed, 3000, int64_t(1) << (seed * 2)));
        const auto all = levels(h);
        summed sums(h, 0);
        const kpti_memory_series &s = sums.s.series;
        ASSERT_LE(s.count, uint32_t(KPTI_SERIES_POINTS));
        ASSERT_EQ(s.count, all.back().first / s.step_ns + 1);
        for (uint32_t i = 0; i < s.count; i++) {
            const uint64_t end = (i + UINT64_C(1)) * s.step_ns - 1;
            int64_t most = i ? level_at(all, i * s.step_ns - 1) : 0;
            for (const auto &level : all)
                if (level.first / s.step_ns == i) most = std::max(most, level.second);
            EXPECT_EQ(s.lines[0]->last[i], level_at(all, end)) << seed << " " << i;
            EXPECT_EQ(s.lines[0]->most[i], most) << seed << " " << i;
        }
        EXPECT_EQ(*std::max_element(s.lines[0]->most, s.lines[0]->most + s.count),
                  sums.s.peak_bytes);
    }
}

TEST(Sums, ThePeakIsThatOfEachStack)
{
    packed_history h(random_steps(3, 5000, 50));
    summed sums(h, 0);
    int64_t most = 0;
    for (const auto &level : levels(h))
        most = std::max(most, level.second);
    double at_peak = 0;
    for (uint32_t i = 0; i < sums.s.count; i++)
        at_peak += kpti_memory_sum_at_peak(&sums.s, &sums.s.sums[i])->bytes;
    EXPECT_EQ(at_peak, static_cast<double>(most));
    EXPECT_EQ(at_peak, sums.s.peak_bytes);
}

/* Many stacks change between moments: the moments become fewer, and each still has the sums of its time. */
TEST(Sums, ChangesAreBounded)
{
    constexpr uint32_t SUMS = 5000;
    kpti_memory_moments m = {};
    int64_t now = 0; /* of every sum */
    m.next_ns = m.step_ns = 1000;
    const auto amount = [](const void *ctx, uint32_t index, int64_t *bytes, int64_t *blocks) {
        *bytes = *static_cast<const int64_t *>(ctx) + index;
        *blocks = 1;
    };
    for (uint64_t time = 500; time < 200000; time += 1000) {
        ASSERT_TRUE(kpti_memory_moments_before(&m, time, amount, &now));
        now = static_cast<int64_t>(time);
        for (uint32_t i = 0; i < SUMS; i++)
            ASSERT_TRUE(kpti_memory_moments_changed(&m, i));
    }
    ASSERT_TRUE(kpti_memory_moments_end(&m, 200000, amount, &now));
    EXPECT_LE(m.change_count, uint64_t(KPTI_MOMENT_CHANGES));
    EXPECT_GE(m.count, 20u);
    std::vector<int64_t> sums(SUMS);
    uint64_t change = 0;
    for (uint32_t i = 0; i < m.count; i++) {
        const uint64_t at = m.moments[i].since_ns;
        for (; change < m.moments[i].end; change++)
            sums[m.changes[change].sum] += m.changes[change].bytes;
        const auto last = static_cast<int64_t>((at - 500) / 1000 * 1000 + 500);
        EXPECT_EQ(sums[0], last) << at;
        EXPECT_EQ(sums[SUMS - 1], last + SUMS - 1) << at;
    }
    kpti_memory_moments_free(&m);
}

double temporary(const packed_history::steps &given, uint32_t within)
{
    packed_history h(given);
    h.h.wanted.temporary_within = within;
    summed sums(h, 0);
    double blocks = 0;
    for (uint32_t i = 0; i < sums.s.count; i++)
        blocks += sums.s.sums[i].temporary.blocks;
    return blocks;
}

kpti_memory_step of_thread(uint64_t os_tid, kpti_memory_step step)
{
    step.os_tid = os_tid;
    return step;
}

TEST(Sums, ABlockIsTemporaryBeforeItsThreadAllocatesMore)
{
    const packed_history::steps given{alloc(1, 16, 10), alloc(2, 32, 10), release(3, 16),
                                      alloc(4, 48, 10), alloc(5, 64, 10), release(6, 32),
                                      release(7, 64)};
    EXPECT_EQ(temporary(given, 1), 1) << "the last one";
    EXPECT_EQ(temporary(given, 2), 2) << "also the first one, after one more";
    EXPECT_EQ(temporary(given, 0), 2) << "the default";
    EXPECT_EQ(temporary(given, 3), 3);
    EXPECT_EQ(temporary(given, 1000), 3) << "not the one that stays";
}

TEST(Sums, OtherThreadsDoNotCount)
{
    packed_history::steps given{of_thread(1, alloc(1, 16, 10))};
    for (int64_t i = 0; i < 50; i++)
        given.push_back(of_thread(2, alloc(2 + i, 4096 + static_cast<uint64_t>(i) * 16, 10)));
    given.push_back(of_thread(1, release(60, 16)));
    EXPECT_EQ(temporary(given, 1), 1) << "allocations of others do not come between";
    given.back().os_tid = 2;
    EXPECT_EQ(temporary(given, 1), 0) << "another thread freed it";
}

/* More threads than are remembered. */
TEST(Sums, ThreadsThatEndTakeNoMemory)
{
    packed_history::steps given;
    for (uint64_t i = 0; i < 3 * KPTI_TEMPORARY_THREADS; i++) {
        given.push_back(of_thread(i + 1, alloc(static_cast<int64_t>(i * 2), 16, 10)));
        given.push_back(of_thread(i + 1, release(static_cast<int64_t>(i * 2 + 1), 16)));
    }
    packed_history h(given);
    summed sums(h, 0);
    EXPECT_LE(sums.s.temporary.thread_count, uint32_t(KPTI_TEMPORARY_THREADS));
    EXPECT_GE(sums.s.sums[0].temporary.blocks, 3 * KPTI_TEMPORARY_THREADS - 3);
}

TEST(Sums, SamplesHaveNoTemporaryBlocks)
{
    packed_history h(packed_history::steps{alloc(1, 16, 1000), release(2, 16)}, 0, 0, 100);
    summed sums(h, 0);
    EXPECT_EQ(sums.s.sums[0].temporary.blocks, 0);
}

/* As of a damaged file: far in the past, far in the future. */
TEST(Sums, TimesThatCannotBe)
{
    packed_history h(packed_history::steps{alloc(5, 16, 10), alloc(INT64_MAX, 32, 10),
                                           alloc(INT64_MIN + 100, 48, 10)});
    summed sums(h);
    EXPECT_EQ(sums.s.now.bytes, 30);
    EXPECT_LE(sums.s.series.count, uint32_t(KPTI_SERIES_POINTS));
    EXPECT_LE(sums.s.moments.count, uint32_t(KPTI_MOMENTS));
}

std::string text_of(const std::string &path)
{
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

/* Takes all records. Returns the first failure. */
kpt_status take_all(kpti_memory_aggregate *aggregate, const packed_history &h)
{
    for (const std::string &record : h.records) {
        const kpt_status status =
            kpti_memory_aggregate_take(aggregate, record.data(), record.size());
        if (status != KPT_OK) return status;
    }
    return KPT_OK;
}

TEST(Aggregate, HasTheTablesOfTheHistory)
{
    packed_history h(random_steps(5, 5000, 50));
    const std::string folder = testing::TempDir();
    kpti_memory_aggregate *aggregate = kpti_memory_aggregate_make();
    kpti_out_file out = {};
    out.fd = -1;
    ASSERT_EQ(kpti_out_open(&out, (folder + "/history.tables.json").c_str()), 0);
    EXPECT_TRUE(kpti_memory_tables_write(&h.h, &out));
    EXPECT_EQ(kpti_out_close(&out, 1), 0);
    ASSERT_EQ(take_all(aggregate, h), KPT_OK);
    EXPECT_EQ(kpti_memory_aggregate_write(aggregate, (folder + "/added.tables.json").c_str()), 0);
    EXPECT_EQ(kpti_memory_aggregate_write(aggregate, (folder + "/added.pickle").c_str()), EINVAL);
    EXPECT_EQ(kpti_memory_aggregate_write(aggregate, "/nowhere/added.html"), ENOENT);
    kpti_memory_aggregate_free(aggregate);
    const std::string text = text_of(folder + "/added.tables.json");
    EXPECT_EQ(text, text_of(folder + "/history.tables.json"));
    EXPECT_NE(text.find("\"temporary\":[["), std::string::npos);
    for (const char *name : {"/added.tables.json", "/history.tables.json"})
        (void)std::remove((folder + name).c_str());
}

/* Allocation 1, 2, 3 … fails, until all succeed: what was added up before can still be written. */
TEST(Aggregate, NoMemory)
{
    packed_history h(random_steps(6, 300, 50));
    const std::string path = testing::TempDir() + "/added.tables.json";
    kpt_status status = KPT_E_MEMORY;
    for (int after = 1; status != KPT_OK; after++) {
        ASSERT_LT(after, 10000);
        malloc_fails(after);
        kpti_memory_aggregate *aggregate = kpti_memory_aggregate_make();
        status = aggregate ? take_all(aggregate, h) : KPT_E_MEMORY;
        malloc_fails(0);
        EXPECT_TRUE(status == KPT_OK || status == KPT_E_MEMORY) << status;
        if (!aggregate) continue;
        EXPECT_EQ(kpti_memory_aggregate_write(aggregate, path.c_str()), 0) << after;
        kpti_memory_aggregate_free(aggregate);
    }
    (void)std::remove(path.c_str());
}

} // namespace
