/* notes_test.cc: the log of users' notes. */
#include "writers/annotations/notes.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/fixtures/failing_heap.h"
#include "tests/fixtures/mock_host/mock_host.h"

namespace
{

uint32_t add_mark(kpti_notes &log, const std::string &name, const std::string &args = "")
{
    kpti_note n = {};
    n.what = KPTI_NOTE_MARK;
    n.name = {name.data(), name.size()};
    n.args = {args.data(), args.size()};
    return kpti_notes_add(&log, &n);
}

TEST(Notes, AreKeptByNumber)
{
    kpti_notes log = {};
    EXPECT_EQ(kpti_notes_get(&log, 0), nullptr);
    EXPECT_EQ(kpti_notes_get(&log, 1), nullptr);
    for (uint32_t i = 1; i <= 1000; i++) {
        std::string name = "n" + std::to_string(i), args = "\"i\":" + std::to_string(i);
        ASSERT_EQ(add_mark(log, i % 3 ? name : "", i % 2 ? args : ""), i);
    }
    EXPECT_EQ(log.count, 1000u);
    const kpti_note *n = kpti_notes_get(&log, 997);
    EXPECT_EQ(std::string(n->name.data, n->name.size), "n997");
    EXPECT_EQ(std::string(n->args.data, n->args.size), "\"i\":997");
    EXPECT_EQ(kpti_notes_get(&log, 999)->name.size, 0u);
    EXPECT_EQ(kpti_notes_get(&log, 0), nullptr);
    EXPECT_EQ(kpti_notes_get(&log, 1001), nullptr);
    EXPECT_EQ(kpti_notes_get(&log, UINT64_C(1) << 32 | 5), nullptr);
    kpti_notes_free(&log);
}

TEST(Notes, AFlightRecorderDropsTheOldest)
{
    kpti_notes log = {};
    for (uint32_t i = 1; i <= 10000; i++) {
        ASSERT_EQ(add_mark(log, std::to_string(i)), i);
        kpti_notes_keep_last(&log, 50);
    }
    EXPECT_EQ(log.count, 50u);
    EXPECT_LE(log.capacity, 64u);
    EXPECT_EQ(kpti_notes_first(&log), 9951u);
    EXPECT_EQ(kpti_notes_get(&log, 9950), nullptr);
    for (uint32_t i = 9951; i <= 10000; i++) {
        const kpti_note *n = kpti_notes_get(&log, i);
        ASSERT_NE(n, nullptr);
        EXPECT_EQ(std::string(n->name.data, n->name.size), std::to_string(i));
    }
    kpti_notes_keep_last(&log, 0);
    EXPECT_EQ(add_mark(log, "next"), 10001u) << "numbers are not used twice";
    kpti_notes_free(&log);
}

/* Texts that are too long to share a block: each is freed with its note, and not earlier. */
TEST(Notes, TextsAreFreedWithTheirNotes)
{
    auto host = std::make_unique<mock_host>();
    mock_host_init(host.get(), "test");
    kpti_notes log = {};
    log.heap = {host.get(), host->table.alloc, host->table.dealloc};
    for (char c = 'a'; c <= 'e'; c++)
        ASSERT_NE(add_mark(log, std::string(5000, c), std::string(3, c)), 0u);
    const uint64_t entries = 1;
    EXPECT_EQ(host->live_blocks, entries + 5);
    kpti_notes_keep_last(&log, 2);
    EXPECT_EQ(host->live_blocks, entries + 2);
    const kpti_note *n = kpti_notes_get(&log, 4);
    EXPECT_EQ(std::string(n->name.data, n->name.size), std::string(5000, 'd'));
    EXPECT_EQ(std::string(n->args.data, n->args.size), "ddd");
    kpti_notes_keep_last(&log, 0);
    EXPECT_EQ(host->live_blocks, entries);
    EXPECT_EQ(add_mark(log, "small"), 6u);
    EXPECT_EQ(add_mark(log, "and another"), 7u);
    EXPECT_EQ(host->live_blocks, entries + 1);
    kpti_notes_free(&log);
    EXPECT_EQ(host->live_blocks, 0u);
}

TEST(Notes, NoMemoryChangesNothing)
{
    for (uint64_t nth = 1; nth <= 300; nth++) {
        const FailingHeap failing(nth);
        kpti_notes log = {};
        log.heap = failing.heap();
        uint32_t expected = 1;
        for (int i = 0; i < 200; i++) {
            uint32_t number = add_mark(log, "some name", "\"k\":1");
            if (!number) continue;
            EXPECT_EQ(number, expected++);
        }
        EXPECT_EQ(log.count, expected - 1);
        kpti_notes_free(&log);
    }
}

} // namespace
