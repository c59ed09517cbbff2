/* kpt_packing_test.cc: the queue of a packed stream when threads are slow: one that packs, one that writes, all of them;
 * and when there is no memory. */
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/packed_words.h"
#include "writers/kpt/kpt_packing.h"

namespace
{

/* Holds threads up, as a machine does that runs others. */
class Gate
{
  public:
    void pass()
    {
        std::unique_lock<std::mutex> hold(lock);
        waiting++;
        changed.notify_all();
        changed.wait(hold, [this] { return is_open; });
        waiting--;
    }
    void wait_for(int count)
    {
        std::unique_lock<std::mutex> hold(lock);
        changed.wait(hold, [this, count] { return waiting >= count; });
    }
    void open()
    {
        const std::lock_guard<std::mutex> hold(lock);
        is_open = true;
        changed.notify_all();
    }

  private:
    std::mutex lock;
    std::condition_variable changed;
    int waiting = 0;
    bool is_open = false;
};

class KptPacking : public testing::Test
{
  protected:
    enum { WORDS = 1024, BUFFERS = KPTI_KPT_BUFFERS, PACKERS = KPTI_KPT_PACKERS };

    struct written {
        kpti_kpt_chunk head;
        std::string bytes;
        size_t event_bytes;
    };

    static void *allocate(void *test, uint64_t size)
    {
        auto *self = static_cast<KptPacking *>(test);
        const bool is_own = std::this_thread::get_id() == self->own;
        if (self->slow_packers && !is_own && size == sizeof(kpti_packer)) self->gate.pass();
        if (self->allocations++ >= self->fail_from && self->failures-- > 0) return nullptr;
        self->blocks++;
        return malloc(size);
    }
    static void release(void *test, void *memory, uint64_t)
    {
        static_cast<KptPacking *>(test)->blocks--;
        free(memory);
    }
    static kpt_status write(void *test, const kpti_kpt_chunk *head, const void *data, size_t size,
                            size_t event_bytes)
    {
        auto *self = static_cast<KptPacking *>(test);
        if (self->slow_writer && std::this_thread::get_id() != self->own) self->gate.pass();
        const std::lock_guard<std::mutex> hold(self->lock);
        self->chunks.push_back(
            {*head, std::string(static_cast<const char *>(data), size), event_bytes});
        return KPT_OK;
    }

    void start()
    {
        const kpti_heap heap = {this, allocate, release};
        packing = kpti_kpt_packing_start(&heap, 1, write, this);
    }
    static std::vector<uint64_t> words_of(uint32_t thread, uint32_t sequence, uint32_t count)
    {
        std::vector<uint64_t> words(count);
        for (uint32_t i = 0; i < count; i++)
            words[i] = static_cast<uint64_t>((i + thread) % 7) << 40 | (sequence * 1000u + i * 16);
        return words;
    }
    void put(uint32_t thread, uint32_t sequence, uint32_t count = WORDS)
    {
        const std::vector<uint64_t> words = words_of(thread, sequence, count);
        kpti_kpt_chunk head = {};
        head.thread = thread;
        head.sequence = sequence;
        EXPECT_EQ(kpti_kpt_packing_put(packing, &head, words.data(), count * sizeof words[0]),
                  KPT_OK);
    }
    size_t count()
    {
        const std::lock_guard<std::mutex> hold(lock);
        return chunks.size();
    }
    /* Each chunk once, those of a thread in their order, with their words. */
    void check(uint32_t threads, uint32_t each, uint32_t words = WORDS)
    {
        std::map<uint32_t, uint32_t> next;
        for (const written &c : chunks) {
            std::vector<uint64_t> got(c.event_bytes / sizeof(uint64_t));
            EXPECT_EQ(c.head.sequence, next[c.head.thread]++);
            ASSERT_EQ(got.size(), words);
            if (c.head.format == KPTI_PACKED_FORMAT) {
                ASSERT_EQ(kpti_packed_count(c.bytes.data(), c.bytes.size()), words);
                ASSERT_EQ(kpti_unpack_words(c.bytes.data(), c.bytes.size(), got.data(), words),
                          words);
            } else {
                ASSERT_EQ(c.bytes.size(), c.event_bytes);
                memcpy(got.data(), c.bytes.data(), c.bytes.size());
            }
            EXPECT_EQ(got, words_of(c.head.thread, c.head.sequence, words));
        }
        ASSERT_EQ(next.size(), threads);
        for (const auto &[thread, chunks_of] : next)
            EXPECT_EQ(chunks_of, each) << thread;
    }

    const std::thread::id own = std::this_thread::get_id();
    Gate gate;
    bool slow_packers =
        false;                /* those of other threads than the test's stop when they first pack */
    bool slow_writer = false; /* the same, when they write */
    std::atomic<int> allocations{0};
    int fail_from = 1 << 30;
    std::atomic<int> failures{0};
    std::atomic<int> blocks{0};
    std::mutex lock;
    std::vector<written> chunks;
    kpti_kpt_packing *packing = nullptr;
};

/* The stream's thread packs chunk 0 all the time. Its buffer is not used again meanwhile. */
TEST_F(KptPacking, ASlowPackerHoldsNobodyUp)
{
    slow_packers = true;
    start();
    put(0, 0);
    gate.wait_for(1);
    for (uint32_t i = 1; i < 50; i++)
        put(0, i);
    kpti_kpt_packing_drain(packing);
    EXPECT_EQ(count(), 50u);
    gate.open();
    for (uint32_t i = 50; i < 100; i++)
        put(0, i);
    kpti_kpt_packing_end(packing);
    check(1, 100);
    for (const written &c : chunks)
        EXPECT_EQ(c.head.format, static_cast<uint32_t>(KPTI_PACKED_FORMAT));
    EXPECT_EQ(blocks, 0);
}

/* No order could be kept if others wrote. They pack, and put as many as there are buffers for. */
TEST_F(KptPacking, ASlowWriterHoldsUpThoseThatFindNoBuffer)
{
    slow_writer = true;
    start();
    put(0, 0);
    gate.wait_for(1);
    for (uint32_t i = 1; i < BUFFERS; i++)
        put(0, i);
    EXPECT_EQ(count(), 0u);
    std::thread drains([this] { kpti_kpt_packing_drain(packing); });
    std::thread puts([this] {
        for (uint32_t i = 0; i < BUFFERS; i++)
            put(1, i);
    });
    gate.open();
    puts.join();
    drains.join();
    EXPECT_GE(count(), static_cast<size_t>(BUFFERS)) << "the drain waited for those put before";
    kpti_kpt_packing_end(packing);
    check(2, BUFFERS);
    EXPECT_EQ(blocks, 0);
}

/* As many as can pack at a time. */
TEST_F(KptPacking, SlowPackersHoldUpThoseThatFindNoBuffer)
{
    slow_packers = true;
    start();
    put(0, 0);
    std::vector<std::thread> drains;
    for (int i = 1; i < PACKERS; i++)
        drains.emplace_back([this] { kpti_kpt_packing_drain(packing); });
    gate.wait_for(PACKERS);
    for (uint32_t i = 1; i < BUFFERS; i++)
        put(0, i);
    EXPECT_EQ(count(), 0u);
    gate.open();
    for (auto &thread : drains)
        thread.join();
    kpti_kpt_packing_drain(packing);
    EXPECT_EQ(count(), static_cast<size_t>(BUFFERS));
    kpti_kpt_packing_end(packing);
    check(1, BUFFERS);
    EXPECT_EQ(blocks, 0);
}

TEST_F(KptPacking, ThreadsThatPutAndDrainKeepTheirOrder)
{
    enum { THREADS = 6, EACH = 60 };
    start();
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < THREADS; t++)
        threads.emplace_back([this, t] {
            for (uint32_t i = 0; i < EACH; i++) {
                put(t, i, 512);
                if (i % 16 == t) kpti_kpt_packing_drain(packing);
            }
        });
    for (auto &thread : threads)
        thread.join();
    kpti_kpt_packing_end(packing);
    check(THREADS, EACH, 512);
    EXPECT_EQ(blocks, 0);
}

/* Without memory for a buffer or a packer, chunks are written as they are. */
TEST_F(KptPacking, NoChunkIsLostWithoutMemory)
{
    for (const int lasting : {1, 1000})
        for (fail_from = 0; fail_from < 6; fail_from++) {
            allocations = 0;
            failures = lasting;
            chunks.clear();
            start();
            if (!packing) {
                EXPECT_EQ(fail_from, 0);
                continue;
            }
            for (uint32_t i = 0; i < 20; i++)
                put(0, i);
            kpti_kpt_packing_end(packing);
            check(1, 20);
            EXPECT_EQ(blocks, 0);
        }
}

/* One chunk at a time needs one buffer, and one packer for each thread that packs. */
TEST_F(KptPacking, AShortStreamTakesLittleMemory)
{
    start();
    for (uint32_t i = 0; i < 20; i++) {
        put(0, i);
        kpti_kpt_packing_drain(packing);
    }
    EXPECT_LE(blocks, 1 + 2 + 2 * 2) << "the queue, buffers, packers of two threads";
    kpti_kpt_packing_end(packing);
    check(1, 20);
}

} // namespace
