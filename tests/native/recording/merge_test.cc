// merge_test.cc: deliveries by time of many threads take memory for those that are open at one time.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/native/recording/delivered.h"

extern "C" {
#include "core/recording/delivery/thread_cursor.h"
#include "core/recording/replay/replay_state.h"
#include "core/recording/replay/track_begin.h"
}

namespace
{

// A host's allocator that counts.
struct Heap {
    uint64_t bytes = 0;
    uint64_t most = 0;
};

void *take_bytes(void *heap, uint64_t size)
{
    Heap *h = static_cast<Heap *>(heap);
    h->bytes += size;
    if (h->bytes > h->most) h->most = h->bytes;
    return malloc(size);
}

void give_bytes(void *heap, void *memory, uint64_t size)
{
    if (memory) static_cast<Heap *>(heap)->bytes -= size;
    free(memory);
}

constexpr uint64_t STEP = 100;

// THREADS threads of two calls each, of which OPEN run at one time. Later tracks begin earlier if BACKWARDS.
void write_threads(Recording *r, uint32_t threads, uint32_t open, bool backwards)
{
    for (uint32_t i = 0; i < threads; i++) {
        const uint64_t begin = STEP * (backwards ? threads - i : i + 1);
        const uint64_t end = begin + STEP * open - STEP / 2;
        r->tape(i)
            .chunk(begin)
            .enter(1, begin)
            .enter(2, begin + 10)
            .exit(2, begin + 20)
            .exit(1, end);
    }
    r->stop(STEP * (threads + open + 1));
}

// Returns the most bytes that a delivery took at one time.
uint64_t most_bytes(uint32_t threads, uint32_t open, uint32_t order, bool backwards)
{
    Recording r;
    Heap heap;
    kpti_env env{};
    Taking taking;
    write_threads(&r, threads, open, backwards);
    env.host.ctx = &heap;
    env.host.alloc = take_bytes;
    env.host.dealloc = give_bytes;
    taking.order = order;
    taking.env = &env;
    const Taken taken = take_checked(r, taking);
    EXPECT_EQ(KPT_OK, taken.status);
    EXPECT_EQ(threads, taken.threads.size());
    EXPECT_EQ((order == KPT_ORDER_TIME ? 4u : 2u) * threads, taken.activities.size());
    EXPECT_EQ(0u, heap.bytes);
    return heap.most;
}

class Merge : public testing::TestWithParam<uint32_t>
{
};

TEST_P(Merge, takes_no_memory_for_threads_that_are_not_open)
{
    enum { FEW = 5000, MANY = 12000, EACH_BYTES = 20 }; // more than a batch has threads of
    for (const bool backwards : {false, true}) {
        const uint64_t few = most_bytes(FEW, 4, GetParam(), backwards);
        EXPECT_LT(most_bytes(MANY, 4, GetParam(), backwards), few + EACH_BYTES * (MANY - FEW));
    }
}

TEST(MergeByTime, takes_memory_for_threads_that_are_open)
{
    const uint64_t four = most_bytes(500, 4, KPT_ORDER_TIME, false);
    const uint64_t hundred = most_bytes(500, 100, KPT_ORDER_TIME, false);
    EXPECT_GT(hundred, four + 90 * sizeof(kpti_thread_cursor));
    EXPECT_LT(hundred, four + 110 * (sizeof(kpti_thread_cursor) + sizeof(kpti_replay)) + (1 << 20));
}

INSTANTIATE_TEST_SUITE_P(InOrder, Merge, testing::Values(KPT_ORDER_TIME, KPT_ORDER_START));

TEST(TrackBegin, is_that_of_the_first_event)
{
    Recording r;
    r.tape(0).chunk(50).enter(1, 70).exit(1, 80);
    r.tape(1).chunk(50).open(1).exit(1, 80);
    r.tape(2).chunk(50).line(7).enter(1, 70).exit(1, 80);
    r.tape(3).gap(50).open(1).exit(1, 80);
    r.tape(4);
    r.tape(5).chunk(5000).enter(1, 5000);
    r.recording.min_duration_ns = 0;
    r.stop(1000);
    const kpti_recording *view = r.view();
    const uint64_t start = view->runs[0].start_ticks;
    EXPECT_EQ(70u, kpti_track_begin(view, 0));
    EXPECT_EQ(start, kpti_track_begin(view, 1));
    EXPECT_LE(kpti_track_begin(view, 2), 70u);
    EXPECT_EQ(50u, kpti_track_begin(view, 3));
    EXPECT_EQ(start, kpti_track_begin(view, 4));
    EXPECT_EQ(1000u, kpti_track_begin(view, 5));
}

} // namespace
