/* event_blocks_test.cc: bytes that spill into a file, events of many tracks in it, sums by thread, and large arrays. */
#include "writers/flame/event_blocks.h"

#include <fcntl.h>
#include <unistd.h>

#include <random>

#include "core/base/growable_array.h"
#include "tests/fixtures/failing_heap.h"
#include "tests/fixtures/scratch.h"
#include "writers/thread_sums.h"

namespace
{

class Spill : public Scratch
{
  protected:
    void SetUp() override
    {
        Scratch::SetUp();
        ASSERT_EQ(kpti_out_path_find(path("out").c_str(), &place), 0);
        log.output = blocks.log.output = &place;
    }
    void TearDown() override
    {
        kpti_spill_log_free(&log);
        kpti_event_blocks_free(&blocks);
        Scratch::TearDown();
    }
    void add(const std::string &bytes)
    {
        uint64_t at = 0;
        ASSERT_EQ(kpti_spill_log_add(&log, bytes.data(), bytes.size(), &at), 0);
        EXPECT_EQ(at, all.size());
        all += bytes;
    }
    void fill(size_t bytes)
    {
        while (all.size() < bytes)
            add(std::string(1 + next() % 50000, static_cast<char>(next())));
    }
    void expect_read(uint64_t at, size_t size)
    {
        std::string bytes(size, 0);
        ASSERT_EQ(kpti_spill_log_read(&log, at, bytes.data(), size), 0);
        EXPECT_TRUE(bytes == all.substr(at, size)) << at;
    }
    /* Adds an event of some bytes to a track, and notes them. */
    kpt_status add_event(uint32_t thread, int64_t ns, uint32_t depth)
    {
        const std::string event(1 + next() % 20, static_cast<char>(next()));
        kpt_status status;
        kpti_event_buffer *b = kpti_event_blocks_reserve(
            &blocks, thread, ns, static_cast<uint32_t>(event.size()), &status);
        if (!b) return status;
        EXPECT_EQ(b->thread, thread);
        std::memcpy(b->bytes + b->head.size, event.data(), event.size());
        b->head.size += static_cast<uint32_t>(event.size());
        b->head.last_ns = ns;
        b->depth = depth;
        if (events.size() <= thread) events.resize(thread + 1);
        events[thread] += event;
        return KPT_OK;
    }
    std::string events_of(uint32_t thread, kpti_event_block *last)
    {
        std::string bytes(KPTI_MAX_BLOCK_BYTES, 0), found;
        uint32_t count = 0, size = 0;
        EXPECT_EQ(kpti_event_blocks_find(&blocks, thread, &count, last), KPT_OK);
        for (uint32_t i = 0; i < count; i++) {
            EXPECT_EQ(kpti_event_blocks_read(&blocks, count, i, bytes.data(), &size), KPT_OK);
            found += bytes.substr(0, size);
        }
        return found;
    }

    kpti_out_path place = {};
    kpti_spill_log log = {};
    kpti_event_blocks blocks = {};
    std::mt19937 next{5};
    std::string all;
    std::vector<std::string> events;
};

TEST_F(Spill, BytesAreReadBack)
{
    fill(KPTI_SPILL_MEMORY_BYTES / 2);
    EXPECT_FALSE(log.has_file);
    expect_read(0, all.size());
    fill(3 * KPTI_SPILL_MEMORY_BYTES);
    EXPECT_TRUE(log.has_file);
    EXPECT_EQ(files(), 0u) << "it has no name";
    expect_read(0, all.size());
    for (int i = 0; i < 2000; i++) {
        const uint64_t at = next() % all.size();
        expect_read(at, next() % std::min<uint64_t>(100000, all.size() - at));
    }
}

/* Where the output is no file, the log is in /tmp. */
TEST_F(Spill, OfADeviceIsInAnotherFolder)
{
    ASSERT_EQ(kpti_out_path_find("/dev/null", &place), 0);
    fill(2 * KPTI_SPILL_MEMORY_BYTES);
    expect_read(0, all.size());
}

TEST_F(Spill, AClosedDescriptorIsAnError)
{
    char byte;
    uint64_t at;
    fill(2 * KPTI_SPILL_MEMORY_BYTES);
    ASSERT_TRUE(log.has_file);
    const int other = open("/dev/null", O_RDWR | O_CLOEXEC);
    ASSERT_EQ(dup2(other, log.fd), log.fd);
    EXPECT_EQ(kpti_spill_log_read(&log, log.written - 1, &byte, 1), EBADF);
    int error = 0;
    while (!error)
        error = kpti_spill_log_add(&log, all.data(), 1 << 20, &at);
    EXPECT_EQ(error, EBADF);
    close(other);
    const int fd = log.fd;
    kpti_spill_log_free(&log);
    EXPECT_EQ(fcntl(fd, F_GETFD) >= 0, true) << "the program's file is not closed";
    close(fd);
}

TEST_F(Spill, EachTrackHasItsEvents)
{
    enum { LONG = 3, TRACKS = 20000, EACH = 60 };
    int64_t ns = 1000;
    for (uint32_t track = LONG; track < TRACKS; track++)
        for (uint32_t i = 0; i < EACH; i++) {
            ns++;
            ASSERT_EQ(add_event(i % 4 ? track : track % LONG, ns, i % 4 ? i + 1 < EACH : 1),
                      KPT_OK);
            if (i == 5 && track > 10000) { /* one that ended goes on */
                ASSERT_EQ(add_event(track - 9000, ns, 0), KPT_OK);
            }
        }
    EXPECT_LT(blocks.buffer_count, 4200u);
    EXPECT_TRUE(blocks.log.has_file);
    EXPECT_EQ(kpti_event_blocks_finish(&blocks), KPT_OK);
    EXPECT_EQ(blocks.buffer_count, 0u);
    for (uint32_t track = 0; track < TRACKS; track++) {
        kpti_event_block last = {};
        EXPECT_TRUE(events_of(track, &last) == events[track]) << track;
        EXPECT_LE(last.start_ns, last.last_ns);
        EXPECT_GT(last.start_ns, 1000);
    }
    kpti_event_block last;
    EXPECT_EQ(events_of(TRACKS + 5, &last), "");
}

TEST_F(Spill, EachFailedAllocationIsAnError)
{
    const uint64_t failures = fail_each_allocation([this](const kpti_heap &heap) {
        kpt_status status = KPT_OK;
        char bytes[KPTI_MAX_BLOCK_BYTES];
        uint32_t count = 0, size = 0;
        kpti_event_block last;
        blocks.heap = blocks.log.heap = heap;
        for (uint32_t i = 0; i < 300 && status == KPT_OK; i++)
            status = add_event(i % 3, i, 1);
        if (status == KPT_OK) status = kpti_event_blocks_finish(&blocks);
        if (status == KPT_OK) status = kpti_event_blocks_find(&blocks, 1, &count, &last);
        if (status == KPT_OK) status = kpti_event_blocks_read(&blocks, count, 0, bytes, &size);
        kpti_event_blocks_free(&blocks);
        blocks = {};
        blocks.log.output = &place;
        return status;
    });
    EXPECT_GE(failures, 8u);
}

TEST(ThreadSums, AddUpByName)
{
    kpti_thread_sums sums = {};
    std::vector<std::string> names;
    for (int i = 0; i < 5000; i++)
        names.push_back("Thread-" + std::to_string(i % 4000));
    for (int round = 0; round < 3; round++)
        for (const std::string &name : names)
            for (uint64_t row = 1; row <= 2; row++)
                ASSERT_EQ(kpti_thread_sums_add(&sums, {name.data(), name.size()}, row, 10 * row),
                          KPT_OK);
    kpti_thread_sums_finish(&sums);
    ASSERT_EQ(sums.count, 4000u);
    uint64_t calls = 0;
    for (uint64_t i = 0; i < sums.count; i++) {
        const kpti_thread_sum &sum = sums.sums[i];
        const std::string name(sum.name.data, sum.name.size);
        EXPECT_EQ(sum.calls, std::stoi(name.substr(7)) < 1000 ? 18u : 9u) << name;
        EXPECT_EQ(sum.own_ns, 10 * sum.calls);
        EXPECT_LE(sum.calls, sums.sums[i ? i - 1 : 0].calls);
        calls += sum.calls;
    }
    EXPECT_EQ(calls, 45000u);
    kpti_thread_sums_free(&sums);
}

TEST(ThreadSums, EachFailedAllocationIsAnError)
{
    fail_each_allocation([](const kpti_heap &heap) {
        kpti_thread_sums sums = {heap, nullptr, 0, 0};
        kpt_status status = KPT_OK;
        for (int i = 0; i < 100 && status == KPT_OK; i++) {
            static std::string name;
            name = std::to_string(i);
            status = kpti_thread_sums_add(&sums, {name.data(), name.size()}, 1, 1);
        }
        kpti_thread_sums_free(&sums);
        return status;
    });
}

TEST(GrowableArray, LargeArraysGrowByAnEighth)
{
    const kpti_heap heap = {};
    uint64_t *items = nullptr;
    uint64_t capacity = 0;
    for (uint64_t i = 0; i < 3000000; i++) {
        const uint64_t before = capacity;
        ASSERT_TRUE(kpti_array_reserve(&heap, &items, &capacity, i + 1, sizeof *items));
        if (before * sizeof *items >= 2 << 20 && capacity != before) {
            EXPECT_EQ(capacity, before + before / 8);
        }
        ASSERT_EQ(items[capacity - 1], 0u);
        items[i] = i + 1;
    }
    for (uint64_t i = 0; i < capacity; i++)
        ASSERT_EQ(items[i], i < 3000000 ? i + 1 : 0);
    EXPECT_FALSE(kpti_array_reserve(&heap, &items, &capacity, UINT64_MAX / 8, sizeof *items));
    kpti_heap_give(&heap, items, 0);
}

} // namespace
