// deliver_test.cc: batches, names and threads, the three orders by example, and sinks that stop.
#include <gtest/gtest.h>

#include "tests/native/recording/delivered.h"
#include "tests/native/recording/random_program.h"

namespace
{

// Two threads that run at once, and share a moment.
void write_two_threads(Recording *r)
{
    r->stop(100);
    r->tape(0).enter(1, 10).enter(2, 20).exit(2, 40).exit(1, 50);
    r->tape(1).enter(4, 15).enter(5, 20).exit(5, 30).enter(6, 60);
}

Taken ordered(uint32_t order)
{
    Recording r;
    Taking taking;
    taking.order = order;
    write_two_threads(&r);
    return take_checked(r, taking);
}

TEST(Deliver, order_thread)
{
    EXPECT_EQ("f2[20-40] f1[10-50] f5[20-30] f6[60-100]S f4[15-100]S",
              ordered(KPT_ORDER_THREAD).text());
}

TEST(Deliver, order_time)
{
    EXPECT_EQ("f1<[10-10] f4<[15-15] f2<[20-20] f5<[20-20] f5>[20-30] f2>[20-40] f1>[10-50] "
              "f6<[60-60] f6>[60-100]S f4>[15-100]S",
              ordered(KPT_ORDER_TIME).text());
}

TEST(Deliver, order_start)
{
    const Taken t = ordered(KPT_ORDER_START);
    EXPECT_EQ("f1[10-50] f4[15-100]S f2[20-40] f5[20-30] f6[60-100]S", t.text());
    EXPECT_EQ(1u, t.only(2).parent_id);
    EXPECT_EQ(2u, t.only(5).parent_id);
    EXPECT_EQ(2u, t.only(6).parent_id);
}

// A begin has no information about the end: order TIME must not look ahead.
TEST(Deliver, order_time_begins_without_the_end)
{
    Recording r;
    r.tape().chunk(1).open(1).gc_begin(2, 5).gc_end(3, 4, 6).enter(2, 10).enter(4, 20).exit(2, 30);
    Taking taking;
    taking.order = KPT_ORDER_TIME;
    const Taken t = take_checked(r, taking);
    EXPECT_EQ("f1<[0-0]B gc2<[5-5] gc2>[5-6] f2<[10-10] f4<[20-20] f4>[20-30]R f2>[10-30] "
              "f1>[0-1000000]BS",
              t.text());
    EXPECT_EQ(0u, t.activities[1].value1);
    EXPECT_EQ(3u, t.activities[2].value1);
}

TEST(Deliver, names_are_as_described)
{
    Recording r;
    r.tape().enter(5, 1).exit(5, 2).enter(3, 3).exit(3, 4).gc_begin(0, 5).gc_end(0, 0, 6);
    const Taken t = take_checked(r);
    ASSERT_EQ(3u, t.names.size());
    const kpt_name &python = t.names.at(5);
    EXPECT_EQ(5u, python.index);
    EXPECT_EQ(50u, python.first_line);
    EXPECT_EQ("f5", std::string(python.display.data, python.display.size));
    EXPECT_EQ("f5", std::string(python.function.data, python.function.size));
    EXPECT_EQ("f5", std::string(python.qualname.data, python.qualname.size));
    EXPECT_EQ("file.py", std::string(python.file.data, python.file.size));
    const kpt_name &gc = t.names.at(FUNCTIONS);
    EXPECT_EQ("Python GC", std::string(gc.display.data, gc.display.size));
    EXPECT_EQ("gc", std::string(gc.function.data, gc.function.size));
    EXPECT_EQ(0u, gc.file.size);
}

TEST(Deliver, functions_that_can_not_be_described_have_a_name_all_the_same)
{
    Recording r;
    r.recording.function_count = FUNCTIONS + 5; // describe has fewer
    r.tape().enter(FUNCTIONS + 2, 1).exit(FUNCTIONS + 2, 2);
    const Taken t = take_checked(r);
    EXPECT_EQ(FUNCTIONS + 2u, t.activities.at(0).name);
    EXPECT_EQ(KPT_KIND_PYTHON, t.activities.at(0).kind);
    EXPECT_EQ("<unknown>", std::string(t.names.at(FUNCTIONS + 2).display.data));
}

TEST(Deliver, without_any_function)
{
    Recording r;
    r.recording.function_count = 0;
    r.tape().enter(9, 1).gc_begin(1, 2).gc_end(1, 1, 3).exit(9, 4);
    const Taken t = take_checked(r);
    EXPECT_EQ(2u, t.names.size());
    EXPECT_EQ(KPT_KIND_GC, t.activities.at(0).kind);
    EXPECT_EQ(0u, t.activities.at(1).name);
}

TEST(Deliver, threads_are_as_recorded)
{
    Recording r;
    r.tape(2).enter(1, 1).exit(1, 2);
    r.tape(2).track.flags = KPT_THREAD_ENDED;
    const Taken t = take_checked(r);
    ASSERT_EQ(1u, t.threads.size()) << "those without activities are not delivered";
    const kpt_thread &thread = t.threads.at(2);
    EXPECT_EQ(1003u, thread.os_tid);
    EXPECT_EQ(21u, thread.host_value);
    EXPECT_EQ(uint32_t{KPT_THREAD_ENDED}, thread.flags);
    EXPECT_EQ("a thread", std::string(thread.name.data, thread.name.size));
}

TEST(Deliver, nothing)
{
    Recording r;
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++) {
        Taking taking;
        taking.order = order;
        const Taken t = take_checked(r, taking);
        EXPECT_EQ(0u, t.batches);
        EXPECT_EQ(0u, t.repairs);
    }
}

TEST(Deliver, batches_of_each_size)
{
    Recording r;
    write_random_program(&r, 3, {});
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++) {
        Taking taking;
        taking.order = order;
        const Taken whole = take_checked(r, taking);
        for (uint32_t size : {1u, 2u, 3u, 7u, 100u, 4095u, 4096u, 100000u, UINT32_MAX}) {
            taking.batch_size = size;
            const Taken t = take_checked(r, taking);
            EXPECT_EQ(whole.text(), t.text());
            const size_t full = std::min<size_t>(size, 4096);
            EXPECT_EQ((whole.activities.size() + full - 1) / full, t.batches);
        }
    }
}

TEST(Deliver, a_sink_that_stops)
{
    Recording r;
    write_random_program(&r, 4, {});
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++)
        for (uint64_t least_duration = 0; least_duration < 2; least_duration++) {
            Taking taking;
            taking.order = order;
            taking.batch_size = 5;
            taking.stop_after = 3;
            r.recording.min_duration_ns = least_duration;
            const Taken t = take(r, taking);
            EXPECT_EQ(1234, t.status);
            EXPECT_EQ(3u, t.batches);
            EXPECT_EQ("", t.error) << "it was not ours";
        }
}

TEST(Deliver, a_sink_that_stops_at_the_last_batch)
{
    Recording r;
    Taking taking;
    taking.stop_after = 1;
    r.tape().enter(1, 1).exit(1, 2);
    EXPECT_EQ(1234, take(r, taking).status);
}

TEST(Deliver, the_hosts_converter_goes_first)
{
    Recording r;
    r.tape().enter(1, 1).exit(1, 2);
    const kpti_env env{};
    int64_t start = 0;
    kpti_error error{};
    kpt_delivery delivery;
    KPT_INIT(&delivery);
    delivery.convert = [](void *ctx, const uint64_t *ticks, int64_t *ns, uint64_t count) {
        for (uint64_t i = 0; i < count; i++)
            ns[i] = static_cast<int64_t>(ticks[i]) + *static_cast<int *>(ctx);
    };
    int shift = 1000;
    delivery.convert_ctx = &shift;
    delivery.sink = [](void *ctx, const kpt_batch *batch) {
        *static_cast<int64_t *>(ctx) = batch->activities->start_ns;
        return kpt_status{KPT_OK};
    };
    delivery.sink_ctx = &start;
    kpti_delivery_job job{&env, r.view(), &delivery, nullptr, nullptr, 0};
    EXPECT_EQ(KPT_OK, kpti_deliver(&job, &error));
    EXPECT_EQ(1001, start);
    delivery.convert = nullptr; // nor is there one of ours: a tick is a nanosecond
    EXPECT_EQ(KPT_OK, kpti_deliver(&job, &error));
    EXPECT_EQ(1, start);
}

} // namespace
