/* log_test.cc: the log on one thread: what is appended is read back, whatever chunks and the counter's upper
 * half do; a limit keeps the last events and counts all others; no memory. */
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "tests/native/memory_log/logs.h"

namespace
{

constexpr uint64_t HALF = UINT64_C(1) << 32;

class Log : public testing::Test
{
  protected:
    void SetUp() override
    {
        make(0);
    }
    void TearDown() override
    {
        log_end(log);
        log_free(log);
    }
    void make(uint64_t max)
    {
        if (log) {
            log_end(log);
            log_free(log);
        }
        log = log_make(max, 0);
        ASSERT_TRUE(log);
        ASSERT_TRUE(log_begin(log));
    }
    /* The events from FIRST up to END, whose address is their number. */
    void note(uint64_t first, uint64_t end)
    {
        for (uint64_t i = first; i < end; i++)
            ASSERT_TRUE(log_note(i, i, i % 100, KPTI_MEMORY_ALLOC, static_cast<uint32_t>(i)));
    }
    kpti_memory_log *log = nullptr;
};

struct reading {
    explicit reading(kpti_memory_log *log) : content(log_read(log)) {}
    ~reading()
    {
        log_content_free(content);
    }
    reading(const reading &) = delete;
    reading &operator=(const reading &) = delete;
    const log_event &operator[](uint64_t i) const
    {
        return content.events[i];
    }
    log_content content;
};

TEST_F(Log, IsEmptyAtFirst)
{
    const reading r(log);
    EXPECT_EQ(r.content.count, 0u);
    EXPECT_EQ(r.content.dropped, 0u);
    EXPECT_EQ(log_bytes(log), 0u);
}

TEST_F(Log, KeepsAllInOrderOverChunks)
{
    const uint64_t count = 3 * LOG_CHUNK + 17;
    note(0, count);
    const reading r(log);
    ASSERT_EQ(r.content.count, count);
    EXPECT_EQ(r.content.dropped, 0u);
    EXPECT_EQ(log_counted(log), r.content.count + r.content.times);
    for (uint64_t i = 0; i < count; i++) {
        ASSERT_EQ(r[i].address, i);
        ASSERT_EQ(r[i].now, i);
        ASSERT_EQ(r[i].size, i % 100);
        ASSERT_EQ(r[i].stack, i);
        ASSERT_EQ(r[i].kind, static_cast<uint32_t>(KPTI_MEMORY_ALLOC));
        ASSERT_EQ(r[i].os_tid, static_cast<uint64_t>(getpid()));
    }
}

TEST_F(Log, SizesUpToTheMostThatFits)
{
    const uint64_t max = (UINT64_C(1) << 48) - 1;
    for (uint64_t size : {UINT64_C(0), UINT64_C(1), max, max + 1, UINT64_MAX})
        log_note(1, 2, size, KPTI_MEMORY_ALLOC, 0);
    const reading r(log);
    EXPECT_EQ(r[0].size, 0u);
    EXPECT_EQ(r[1].size, 1u);
    for (size_t i = 2; i < 5; i++)
        EXPECT_EQ(r[i].size, max);
}

/* Wherever in a chunk it changes, each event has its whole time. */
TEST_F(Log, TheCountersUpperHalfChanges)
{
    for (uint64_t before = LOG_CHUNK - 4; before < LOG_CHUNK + 3; before++) {
        uint64_t i;
        make(0);
        for (i = 0; i < before; i++)
            log_note(HALF - before + i, i, 0, KPTI_MEMORY_ALLOC, 0);
        for (; i < before + 3; i++)
            log_note(HALF - before + i, i, 0, KPTI_MEMORY_ALLOC, 0);
        log_note(7 * HALF + 5, i, 0, KPTI_MEMORY_ALLOC, 0);
        log_note(6 * HALF + 5, i + 1, 0, KPTI_MEMORY_ALLOC, 0); /* a little before */
        const reading r(log);
        ASSERT_EQ(r.content.count, before + 5);
        for (i = 0; i < before + 3; i++)
            ASSERT_EQ(r[i].now, HALF - before + i) << before;
        EXPECT_EQ(r[i].now, 7 * HALF + 5);
        EXPECT_EQ(r[i + 1].now, 6 * HALF + 5);
    }
}

TEST_F(Log, ALimitKeepsTheLastAndCountsTheOthers)
{
    for (int limit : {1, 1000, LOG_CHUNK - 1, LOG_CHUNK + 0, 3 * LOG_CHUNK}) {
        const auto max = static_cast<uint64_t>(limit);
        const uint64_t count = 20 * LOG_CHUNK + 11;
        make(max);
        note(0, count);
        const reading r(log);
        EXPECT_EQ(r.content.count + r.content.dropped, count) << max;
        EXPECT_GE(r.content.count, max);
        EXPECT_LE(r.content.count, max + 2 * LOG_CHUNK);
        for (uint64_t i = 0; i < r.content.count; i++)
            ASSERT_EQ(r[i].address, r.content.dropped + i);
    }
}

/* TIME events are none that were lost. */
TEST_F(Log, DropsAreExactWhereTheUpperHalfChangesOften)
{
    const uint64_t count = 10 * LOG_CHUNK;
    make(100);
    for (uint64_t i = 0; i < count; i++)
        log_note(i * HALF / 3, i, 0, KPTI_MEMORY_ALLOC, 0);
    const reading r(log);
    EXPECT_EQ(r.content.count + r.content.dropped, count);
}

TEST_F(Log, OneRecordsAtATime)
{
    kpti_memory_log *other = log_make(0, 0);
    EXPECT_FALSE(log_begin(other));
    EXPECT_TRUE(log_begin(log)) << "it does already";
    log_end(other);
    EXPECT_TRUE(log_note(1, 1, 1, KPTI_MEMORY_ALLOC, 0)) << "that was not the one";
    log_end(log);
    EXPECT_FALSE(log_note(1, 1, 1, KPTI_MEMORY_ALLOC, 0));
    EXPECT_TRUE(log_begin(other));
    EXPECT_TRUE(log_note(1, 1, 1, KPTI_MEMORY_ALLOC, 0));
    log_end(other);
    EXPECT_EQ(reading(log).content.count, 1u);
    EXPECT_EQ(reading(other).content.count, 1u);
    log_free(other);
}

TEST_F(Log, OwnAllocationsAreNotRecorded)
{
    ASSERT_TRUE(log_enter());
    EXPECT_FALSE(log_note(1, 1, 1, KPTI_MEMORY_ALLOC, 0));
    log_leave();
    EXPECT_TRUE(log_note(1, 1, 1, KPTI_MEMORY_ALLOC, 0));
}

TEST_F(Log, GoesOnAfterAPause)
{
    note(0, 10);
    log_end(log);
    log_begin(log);
    note(10, 20);
    EXPECT_EQ(reading(log).content.count, 20u);
    log_end(log);
    log_clear(log);
    EXPECT_EQ(reading(log).content.count, 0u);
    log_begin(log);
    note(0, 5);
    EXPECT_EQ(reading(log).content.count, 5u);
}

/* A log that is freed, and another one that gets its memory. */
TEST_F(Log, IsNotTakenForAnEarlierOne)
{
    for (int i = 0; i < 100; i++) {
        make(0);
        note(0, 3);
        ASSERT_EQ(reading(log).content.count, 3u);
    }
}

TEST_F(Log, WithoutMemoryEventsAreCountedAsLost)
{
    note(0, LOG_CHUNK - 1); /* with a TIME event the chunk is full */
    malloc_fails(1);
    for (uint64_t i = 0; i < 5; i++)
        log_note(i, i, 0, KPTI_MEMORY_ALLOC, 0);
    EXPECT_EQ(log_read(log).events, nullptr);
    malloc_fails(0);
    note(0, 3);
    const reading r(log);
    EXPECT_EQ(r.content.dropped, 5u);
    EXPECT_EQ(r.content.count, LOG_CHUNK - 1 + 3u);
    malloc_fails(1);
    EXPECT_EQ(log_make(0, 0), nullptr);
    malloc_fails(0);
}

TEST_F(Log, AChildOfAForkRecordsNothingAndMayBegin)
{
    note(0, 10);
    const pid_t child = fork();
    if (child == 0) {
        log_forked();
        const int silent = !log_note(1, 1, 1, KPTI_MEMORY_ALLOC, 0);
        log_clear(log);
        const int begun = log_begin(log) && log_note(1, 1, 1, KPTI_MEMORY_ALLOC, 0);
        const log_content content = log_read(log);
        _exit(silent && begun && content.count == 1 ? 0 : 1);
    }
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    note(10, 12);
    EXPECT_EQ(reading(log).content.count, 12u);
}

} // namespace
