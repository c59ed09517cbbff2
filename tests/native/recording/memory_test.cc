// memory_test.cc: the first, the second, … allocation of a delivery fails: the delivery returns an error,
// and no memory leaks.
#include <gtest/gtest.h>

#include "tests/fixtures/mock_host/mock_host.h"
#include "tests/native/recording/delivered.h"
#include "tests/native/recording/random_program.h"

namespace
{

class Memory : public testing::Test
{
  protected:
    Memory()
    {
        mock_host_init(&host, "memory_test");
        env.host = host.table;
    }

    // Delivers with the Nth allocation failing, for each N that there is.
    void fail_everywhere(Recording &recording, uint32_t order, int least_allocations)
    {
        Taking taking;
        taking.order = order;
        taking.env = &env;
        taking.batch_size = 10;
        for (uint64_t n = 1;; n++) {
            host.alloc_calls = 0;
            host.fail_alloc_at = n;
            const Taken t = take(recording, taking);
            ASSERT_EQ(0u, host.live_blocks) << "a leak, when allocation " << n << " failed";
            ASSERT_EQ(0u, host.bad_frees) << "freed with another size, at " << n;
            if (t.status == KPT_OK) {
                EXPECT_GT(n, static_cast<uint64_t>(least_allocations));
                EXPECT_LT(host.alloc_calls, n) << "it failed, and went on";
                break;
            }
            ASSERT_EQ(KPT_E_MEMORY, t.status);
            ASSERT_NE("", t.error);
        }
    }

    mock_host host;
    kpti_env env{};
};

TEST_F(Memory, fails_at_each_point_of_each_order)
{
    Recording r;
    write_random_program(&r, 7, {});
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++)
        fail_everywhere(r, order, 10);
}

TEST_F(Memory, fails_at_each_point_with_a_least_duration)
{
    Recording r;
    write_random_program(&r, 8, {});
    r.recording.min_duration_ns = 5;
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++)
        fail_everywhere(r, order, 10);
}

// Deep stacks, many collections and many calls each make an array grow.
TEST_F(Memory, fails_as_things_grow)
{
    Recording r;
    for (uint32_t i = 0; i < 1000; i++)
        r.tape().gc_begin(0, 2 * i).gc_end(0, 0, 2 * i + 1);
    for (uint32_t i = 0; i < 40000; i++)
        r.tape().enter(i % 50, 5000 + i);
    r.tape(1).chunk(0);
    for (uint32_t i = 0; i < 300; i++)
        r.tape(1).open(i % 50);
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++)
        fail_everywhere(r, order, 15);
}

TEST_F(Memory, is_given_back_when_the_sink_stops)
{
    Recording r;
    write_random_program(&r, 9, {});
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++) {
        Taking taking;
        taking.order = order;
        taking.env = &env;
        taking.batch_size = 10;
        taking.stop_after = 2;
        EXPECT_EQ(1234, take(r, taking).status);
        EXPECT_EQ(0u, host.live_blocks);
        EXPECT_EQ(0u, host.bad_frees);
    }
}

// The promise of deliver.h: no memory per call, except in order START, and one byte for a minimum duration.
TEST_F(Memory, does_not_grow_with_the_calls)
{
    constexpr uint64_t calls = 200000;
    Recording r;
    for (uint64_t i = 0; i < calls; i++)
        r.tape().enter(1, 2 * i).exit(1, 2 * i + 1);
    r.stop(2 * calls);
    (void)r.view();
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++)
        for (uint64_t least_duration = 0; least_duration < 2; least_duration++) {
            uint64_t max = 0;
            std::pair<mock_host *, uint64_t *> ctx{&host, &max};
            kpti_error error{};
            kpt_delivery delivery;
            KPT_INIT(&delivery);
            delivery.order = order;
            delivery.sink_ctx = &ctx;
            delivery.sink = [](void *c, const kpt_batch *) {
                auto *both = static_cast<std::pair<mock_host *, uint64_t *> *>(c);
                *both->second = std::max(*both->second, both->first->live_bytes);
                return kpt_status{KPT_OK};
            };
            kpti_delivery_job job{&env, &r.recording, &delivery, nullptr, nullptr, 0};
            r.recording.min_duration_ns = least_duration;
            EXPECT_EQ(KPT_OK, kpti_deliver(&job, &error));
            const uint64_t per_call = order == KPT_ORDER_START ? 9 : least_duration ? 1 : 0;
            EXPECT_LT(max, 500000 + (calls + 16384) * per_call) << "order " << order;
        }
}

} // namespace
