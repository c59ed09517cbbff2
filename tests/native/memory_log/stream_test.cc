/* stream_test.cc: a log that is delivered while it records: nothing is missing, memory is bounded, a sink that fails ends
 * it. */
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/native/callstacks/tables.h"
#include "tests/native/memory_log/logs.h"
#include "tests/native/memory_log/packed_history.h"

namespace
{

class Stream : public testing::Test
{
  protected:
    void SetUp() override
    {
        log = log_make(0, 0);
    }
    void TearDown() override
    {
        log_end(log);
        log_stream_end(log);
        log_free(log);
    }
    void begin()
    {
        ASSERT_EQ(log_stream_begin(log, take, this), KPT_OK);
        ASSERT_TRUE(log_begin(log));
    }
    void end()
    {
        log_end(log);
        EXPECT_EQ(log_stream_flush(log, 1), fails_after ? KPT_E_IO : KPT_OK);
    }
    static kpt_status take(void *ctx, const void *record, uint64_t size)
    {
        auto *self = static_cast<Stream *>(ctx);
        EXPECT_FALSE(self->is_inside.exchange(true)) << "one at a time";
        if (self->fails_after && self->records.size() + 1 >= self->fails_after) {
            self->is_inside = false;
            self->refused++;
            return KPT_E_IO;
        }
        self->records.emplace_back(static_cast<const char *>(record), size);
        self->is_inside = false;
        return KPT_OK;
    }
    void note(uint64_t address, uint64_t size, int kind, uint32_t stack = 0)
    {
        log_note(log_ticks(), address, size, static_cast<uint32_t>(kind), stack);
    }

    kpti_memory_log *log = nullptr;
    std::vector<std::string> records;
    std::atomic<bool> is_inside{false};
    size_t fails_after = 0;
    int refused = 0;
};

TEST_F(Stream, HasAllWithStacks)
{
    const uint32_t places[] = {place_told(KPT_SYMBOL_PYTHON, "inner", "a.py", 3),
                               place_told(KPT_SYMBOL_PYTHON, "outer", "b.py", 9)};
    const uint32_t deep = stack_make(places, 2);
    const uint32_t flat = stack_make(places + 1, 1);
    begin();
    for (uint64_t i = 0; i < 100000; i++) {
        note(4096 + i % 1000 * 64, 64 + i % 3, KPTI_MEMORY_ALLOC, i % 2 ? deep : flat);
        note(4096 + i % 1000 * 64, 0, KPTI_MEMORY_FREE);
        if (i == 50000) {
            EXPECT_EQ(log_stream_flush(log, 0), KPT_OK);
        }
    }
    end();
    packed_history h(0, records);
    const auto all = h.entries();
    ASSERT_EQ(all.size(), 200000u);
    ASSERT_EQ(h.h.names.symbol_count, 2u);
    ASSERT_EQ(h.h.names.node_count, 2u);
    for (uint64_t i = 0; i < 100000; i++) {
        const kpti_memory_entry &e = all[2 * i];
        const kpti_memory_node *node = kpti_memory_node_at(&h.h.names, e.stack);
        const kpt_str name = h.h.names.symbols[node->symbol].name;
        ASSERT_EQ(e.size, 64 + i % 3);
        ASSERT_EQ(std::string(name.data, name.size), i % 2 ? "inner" : "outer");
        ASSERT_EQ(node->parent != 0, i % 2 != 0);
        ASSERT_EQ(all[2 * i + 1].ends, 1);
    }
    stack_release(deep);
    stack_release(flat);
}

/* Blocks go from thread to thread, and each free finds its allocation: events of all threads are in order. */
TEST_F(Stream, OfThreadsIsInTheOrderOfTime)
{
    enum { THREADS = 4, ROUNDS = 30000, PLACES = 64 };
    std::vector<std::atomic<int>> places(PLACES);
    std::vector<std::thread> threads;
    begin();
    for (int t = 0; t < THREADS; t++)
        threads.emplace_back([&, t] {
            for (int i = 0; i < ROUNDS; i++) {
                const auto place = static_cast<uint64_t>((i * 7 + t * 13) % PLACES);
                int state = places[place];
                if (state == 2 || !places[place].compare_exchange_strong(state, 2)) continue;
                note(4096 + place * 64, state ? 0 : 32,
                     state ? KPTI_MEMORY_FREE : KPTI_MEMORY_ALLOC);
                places[place] = !state;
            }
        });
    for (std::thread &t : threads)
        t.join();
    end();
    packed_history h(0, records);
    uint64_t left = 0;
    for (const auto &place : places)
        left += place == 1;
    EXPECT_EQ(h.look().unseen_frees, 0u);
    EXPECT_EQ(h.survey.end.blocks, left);
    for (const kpti_memory_entry &e : h.entries())
        ASSERT_EQ(e.ends, e.kind == KPTI_MEMORY_FREE ? 1 : 0);
}

TEST_F(Stream, KeepsNothing)
{
    begin();
    for (uint64_t i = 0; i < 2000000; i++)
        note(4096 + i % 1000 * 64, 64, i % 2 ? KPTI_MEMORY_FREE : KPTI_MEMORY_ALLOC);
    EXPECT_LT(log_bytes(log), 20u << 20) << "128 chunks and what is filled meanwhile";
    EXPECT_EQ(log_stream_flush(log, 0), KPT_OK);
    EXPECT_LT(log_bytes(log), 1u << 20);
    end();
    packed_history h(0, records);
    EXPECT_EQ(h.h.count, 2000000u);
}

TEST_F(Stream, ThreadsThatEndedLeaveNoMemory)
{
    begin();
    for (uint64_t i = 0; i < 200; i++)
        std::thread([&] { note(4096 + i * 64, 64, KPTI_MEMORY_ALLOC); }).join();
    EXPECT_EQ(log_stream_flush(log, 0), KPT_OK);
    EXPECT_LT(log_bytes(log), 1u << 20);
    end();
    packed_history h(0, records);
    EXPECT_EQ(h.entries().size(), 200u);
}

TEST_F(Stream, GoesOnAfterAStop)
{
    begin();
    note(16, 16, KPTI_MEMORY_ALLOC);
    end();
    ASSERT_TRUE(log_begin(log));
    note(16, 0, KPTI_MEMORY_FREE);
    end();
    packed_history h(0, records);
    EXPECT_EQ(h.entries().size(), 2u);
    EXPECT_EQ(h.look().end.blocks, 0u);
}

/* Whatever a record has, reading it ends. */
TEST_F(Stream, DamagedRecordsAreReadOrRefused)
{
    const uint32_t place = place_told(KPT_SYMBOL_PYTHON, "f", "f.py", 3);
    const uint32_t stack = stack_make(&place, 1);
    std::mt19937 random(1);
    begin();
    for (uint64_t i = 0; i < 300; i++) {
        note(4096 + i % 100 * 64, 64 + i % 3, KPTI_MEMORY_ALLOC, stack);
        note(4096 + i * 7 % 100 * 64, 0, KPTI_MEMORY_FREE);
    }
    end();
    for (int round = 0; round < 600; round++) {
        std::vector<std::string> changed = records;
        for (int i = 0; i < 1 + round % 4; i++) {
            std::string &record = changed[random() % changed.size()];
            if (round % 5)
                record[random() % record.size()] = static_cast<char>(random());
            else
                record.resize(random() % record.size());
            if (record.empty()) record = "?";
        }
        packed_history h(0, changed);
        if (h.opened == KPT_OK) h.look();
    }
    stack_release(stack);
}

/* The program goes on, the sink is left alone, and what it has is whole. */
TEST_F(Stream, ASinkThatFailsEndsIt)
{
    fails_after = 20;
    begin();
    for (uint64_t i = 0; i < 1000000; i++)
        note(4096 + i * 7919 % 1000003 * 64, 64 + i * 31 % 999, KPTI_MEMORY_ALLOC);
    end();
    EXPECT_EQ(refused, 1);
    EXPECT_LT(log_bytes(log), 20u << 20);
    packed_history h(0, records);
    const auto all = h.entries();
    EXPECT_FALSE(h.h.is_damaged);
    EXPECT_GT(all.size(), 10000u);
    for (uint64_t i = 0; i < all.size(); i++)
        ASSERT_EQ(all[i].address, 4096 + i * 7919 % 1000003 * 64);
}

} // namespace
