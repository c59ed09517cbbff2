/* profile_test.cc: calls added up by function, compared with a slow sum. */
#include "writers/profile.h"

#include <gtest/gtest.h>

#include "tests/fixtures/batches/batches.h"
#include "tests/fixtures/failing_heap.h"
#include "tests/fixtures/mock_host/mock_host.h"

namespace
{

class Profile : public testing::Test
{
  protected:
    ~Profile() override
    {
        kpti_profile_free(profile);
    }
    void take(tape &t, uint32_t flags = 0)
    {
        delivered = t.delivery(KPT_ORDER_THREAD);
        ASSERT_EQ(kpti_profile_open(&heap, flags, &profile), KPT_OK);
        ASSERT_EQ(kpti_profile_batch(profile, delivered.batch()), KPT_OK);
    }
    std::vector<kpti_profile_row> rows(kpti_profile_sort sort = KPTI_PROFILE_BY_OWN)
    {
        uint32_t count;
        const kpti_profile_row *all = kpti_profile_rows(profile, sort, &count);
        return {all, all + count};
    }

    kpti_heap heap = {};
    kpti_profile *profile = nullptr;
    parcel delivered; /* the profile borrows its names */
};

/* By name, and by thread if wanted; every call is compared with all that are around it. */
std::map<std::pair<uint32_t, uint32_t>, kpti_profile_row> slow_sum(const tape &t, bool by_thread)
{
    std::map<std::pair<uint32_t, uint32_t>, kpti_profile_row> sum;
    std::map<uint64_t, const kpt_activity *> by_id;
    for (const kpt_activity &a : t.calls)
        by_id[a.id] = &a;
    for (const kpt_activity &a : t.calls) {
        auto ns = static_cast<uint64_t>(a.end_ns - a.start_ns);
        uint32_t thread = by_thread ? a.thread : 0;
        kpti_profile_row fresh = {a.name, thread, 0, 0, 0, UINT64_MAX, 0, 0, a.kind};
        auto &row = sum.emplace(std::make_pair(a.name, thread), fresh).first->second;
        bool is_inner = false;
        for (uint64_t id = a.parent_id; id; id = by_id[id]->parent_id)
            is_inner = is_inner || by_id[id]->name == a.name;
        row.calls++;
        row.own_ns += ns;
        row.total_ns += is_inner ? 0 : ns;
        row.min_ns = std::min(row.min_ns, ns);
        row.max_ns = std::max(row.max_ns, ns);
    }
    for (const kpt_activity &a : t.calls)
        if (a.parent_id)
            sum.at({by_id[a.parent_id]->name, by_thread ? a.thread : 0}).own_ns -=
                static_cast<uint64_t>(a.end_ns - a.start_ns);
    return sum;
}

void expect_same(const kpti_profile_row &a, const kpti_profile_row &b)
{
    EXPECT_EQ(a.calls, b.calls) << a.name;
    EXPECT_EQ(a.own_ns, b.own_ns) << a.name;
    EXPECT_EQ(a.total_ns, b.total_ns) << a.name;
    EXPECT_EQ(a.min_ns, b.min_ns) << a.name;
    EXPECT_EQ(a.max_ns, b.max_ns) << a.name;
}

TEST_F(Profile, RandomProgramsAddUp)
{
    for (uint32_t seed = 1; seed <= 40; seed++) {
        tape t = tape::random(seed, 1 + seed % 3, 500);
        uint32_t flags = seed % 2 ? 0 : KPTI_PROFILE_BY_THREAD;
        take(t, flags);
        auto expected = slow_sum(t, flags != 0);
        EXPECT_EQ(rows().size(), expected.size());
        for (const kpti_profile_row &row : rows())
            expect_same(row, expected.at({row.name, row.thread}));
        EXPECT_EQ(kpti_profile_calls(profile), t.calls.size());
        kpti_profile_free(profile);
        profile = nullptr;
    }
}

TEST_F(Profile, RecursionIsCountedOnce)
{
    tape t;
    uint32_t f = t.name("f"), g = t.name("g"), thread = t.thread("T");
    t.enter(thread, f, 0);
    for (int64_t i = 0; i < 1000; i++)
        t.enter(thread, i % 2 ? f : g, i);
    for (int64_t i = 0; i < 1000; i++)
        t.leave(thread, 1000 + i);
    t.leave(thread, 3000);
    take(t);
    auto found = rows(KPTI_PROFILE_BY_TOTAL);
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[0].name, f);
    EXPECT_EQ(found[0].total_ns, 3000u);
    EXPECT_EQ(found[0].calls, 501u);
    EXPECT_EQ(found[1].total_ns, 1999u);
}

/* A loop that calls f through another function each time: the counts of f are merged. */
TEST_F(Profile, MemoryDoesNotGrowWithTheCalls)
{
    uint64_t live[2];
    for (int round = 0; round < 2; round++) {
        auto host = std::make_unique<mock_host>();
        mock_host_init(host.get(), "test");
        heap = {host.get(), host->table.alloc, host->table.dealloc};
        tape t;
        uint32_t main = t.name("main"), g = t.name("g"), f = t.name("f"), thread = t.thread("T");
        int64_t count = round ? 50000 : 500;
        t.enter(thread, main, 0);
        for (int64_t i = 0; i < count; i++) {
            t.enter(thread, g, i * 10);
            t.enter(thread, f, i * 10 + 1);
            t.leave(thread, i * 10 + 4);
            t.leave(thread, i * 10 + 5);
        }
        t.leave(thread, count * 10);
        take(t);
        auto found = rows(KPTI_PROFILE_BY_TOTAL);
        EXPECT_EQ(found[2].name, f);
        EXPECT_EQ(found[2].total_ns, static_cast<uint64_t>(count) * 3);
        live[round] = host->live_bytes;
        kpti_profile_free(profile);
        profile = nullptr;
        EXPECT_EQ(host->live_blocks, 0u);
    }
    EXPECT_EQ(live[0], live[1]);
}

TEST_F(Profile, RowsAreSortedAsAsked)
{
    tape t;
    uint32_t thread = t.thread("T");
    uint32_t often = t.name("often"), once = t.name("once"), outer = t.name("outer");
    t.enter(thread, outer, 0);
    for (int64_t i = 0; i < 5; i++) {
        t.enter(thread, often, i);
        t.leave(thread, i + 1);
    }
    t.enter(thread, once, 10);
    t.leave(thread, 90);
    t.leave(thread, 100);
    take(t);
    EXPECT_EQ(rows(KPTI_PROFILE_BY_OWN)[0].name, once);
    EXPECT_EQ(rows(KPTI_PROFILE_BY_TOTAL)[0].name, outer);
    EXPECT_EQ(rows(KPTI_PROFILE_BY_CALLS)[0].name, often);
    EXPECT_EQ(rows(KPTI_PROFILE_BY_CALLS)[1].name, once) << "equal ones as they came";
    EXPECT_EQ(rows(KPTI_PROFILE_BY_MAX)[1].name, once);
    const kpt_name *name = kpti_profile_name(profile, once);
    ASSERT_NE(name, nullptr);
    EXPECT_EQ(std::string(name->display.data, name->display.size), "once");
    EXPECT_EQ(kpti_profile_thread(profile, thread)->os_tid, uint64_t{tape::FIRST_TID});
    EXPECT_EQ(kpti_profile_name(profile, 1000), nullptr);
    EXPECT_EQ(kpti_profile_thread(profile, 1000), nullptr);
}

TEST_F(Profile, NothingGivesNoRows)
{
    tape t;
    take(t);
    EXPECT_EQ(rows().size(), 0u);
}

TEST_F(Profile, PointsAreNoCalls)
{
    tape t;
    uint32_t f = t.name("f"), thread = t.thread("T");
    t.enter(thread, f, 0);
    t.point(thread, 1, 5);
    t.leave(thread, 10);
    take(t);
    ASSERT_EQ(rows().size(), 1u);
    EXPECT_EQ(rows()[0].own_ns, 10u);
}

TEST_F(Profile, WhatCanNotBeReadIsRefused)
{
    tape t = tape::random(1, 1, 5);
    parcel p = t.delivery(KPT_ORDER_TIME);
    ASSERT_EQ(kpti_profile_open(&heap, 0, &profile), KPT_OK);
    EXPECT_EQ(kpti_profile_batch(profile, p.batch()), KPT_E_UNSUPPORTED);
    EXPECT_EQ(kpti_profile_batch(profile, nullptr), KPT_E_UNSUPPORTED) << "it stays at that";
    kpti_profile_free(profile);
    ASSERT_EQ(kpti_profile_open(&heap, 0, &profile), KPT_OK);
    EXPECT_EQ(kpti_profile_batch(profile, nullptr), KPT_E_SIZE);
}

TEST_F(Profile, NoMemoryAtAnyPointIsToldAndLosesNothing)
{
    tape t = tape::random(7, 3, 3000);
    parcel p = t.delivery(KPT_ORDER_THREAD);
    const uint64_t failures = fail_each_allocation([&](const kpti_heap &failing) {
        kpt_status status = kpti_profile_open(&failing, 0, &profile);
        if (status == KPT_OK) status = kpti_profile_batch(profile, p.batch());
        kpti_profile_free(profile);
        profile = nullptr;
        return status;
    });
    EXPECT_GE(failures, 5U);
}

/* The rows of all steps add up to the rows without steps; a call counts in the step in which it began. */
TEST_F(Profile, StepsAreRowsOfTheirOwn)
{
    const kpti_profile_step steps[] = {{2000, 60000}, {60000, 90000}, {200000, INT64_MAX}};
    for (uint32_t flags : {0u, static_cast<uint32_t>(KPTI_PROFILE_BY_THREAD)}) {
        tape t = tape::random(5, 3, 200);
        std::map<std::pair<uint32_t, uint32_t>, uint64_t> wanted,
            found; /* calls by name and step */
        std::map<uint32_t, uint64_t> own, whole;
        for (const kpt_activity &a : t.calls) {
            uint32_t step = 0;
            for (uint32_t i = 0; i < 3; i++)
                if (a.start_ns >= steps[i].begin_ns && a.start_ns < steps[i].end_ns) step = i + 1;
            wanted[{a.name, step}]++;
        }
        delivered = t.delivery(KPT_ORDER_THREAD);
        ASSERT_EQ(kpti_profile_open(&heap, flags, &profile), KPT_OK);
        kpti_profile_by_step(profile, steps, 3);
        ASSERT_EQ(kpti_profile_batch(profile, delivered.batch()), KPT_OK);
        for (const kpti_profile_row &row : rows()) {
            found[{row.name, row.step}] += row.calls;
            own[row.name] += row.own_ns;
        }
        EXPECT_EQ(found, wanted);
        kpti_profile_free(profile);
        take(t, flags);
        for (const kpti_profile_row &row : rows())
            whole[row.name] += row.own_ns;
        EXPECT_EQ(own, whole);
        kpti_profile_free(profile);
        profile = nullptr;
    }
}

/* Threads of some calls each, so many that rows are passed, or forgotten, on the way. */
tape many_threads(uint32_t count)
{
    tape t;
    const uint32_t outer = t.name("outer"), inner = t.name("inner");
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t thread = t.thread("Thread-" + std::to_string(i));
        t.enter(thread, outer, i);
        t.enter(thread, inner, i + 1);
        t.leave(thread, i + 2 + i % 1000);
        t.leave(thread, i + 5 + i % 1000);
    }
    return t;
}

enum { MANY = 20000, HALF = 5000 };

TEST_F(Profile, RowsOfManyThreadsArePassed)
{
    struct passed {
        kpti_profile *profile = nullptr;
        std::map<std::pair<uint32_t, uint32_t>, kpti_profile_row> rows;
        uint32_t times = 0;
        static kpt_status take(void *ctx, const kpti_profile_row *some, uint32_t count)
        {
            auto *p = static_cast<passed *>(ctx);
            p->times++;
            for (uint32_t i = 0; i < count; i++) {
                const kpt_thread *thread = kpti_profile_thread(p->profile, some[i].thread);
                EXPECT_NE(thread, nullptr);
                if (!thread) return KPT_E_STATE;
                EXPECT_EQ(thread->index, some[i].thread);
                EXPECT_TRUE(
                    p->rows.emplace(std::make_pair(some[i].name, some[i].thread), some[i]).second);
            }
            return KPT_OK;
        }
    } got;
    tape t = many_threads(MANY);
    delivered = t.delivery(KPT_ORDER_THREAD);
    ASSERT_EQ(kpti_profile_open(&heap, KPTI_PROFILE_BY_THREAD, &profile), KPT_OK);
    got.profile = profile;
    kpti_profile_pass(profile, passed::take, &got);
    ASSERT_EQ(kpti_profile_batch(profile, delivered.batch()), KPT_OK);
    EXPECT_EQ(got.times, 2u);
    EXPECT_EQ(kpti_profile_thread(profile, 0), nullptr) << "it is forgotten";
    EXPECT_EQ(kpti_profile_pass_rest(profile), KPT_OK);
    EXPECT_EQ(got.times, 3u);
    EXPECT_EQ(got.rows.size(), 2u * MANY);
    for (const auto &[key, row] : got.rows) {
        EXPECT_EQ(row.calls, 1u);
        EXPECT_EQ(row.total_ns, key.second % 1000 + (key.first ? 1 : 5));
    }
}

TEST_F(Profile, AFailureToPassEndsTheDelivery)
{
    tape t = many_threads(MANY);
    delivered = t.delivery(KPT_ORDER_THREAD);
    ASSERT_EQ(kpti_profile_open(&heap, KPTI_PROFILE_BY_THREAD, &profile), KPT_OK);
    kpti_profile_pass(
        profile,
        [](void *, const kpti_profile_row *, uint32_t) -> kpt_status { return KPT_E_STATE; },
        nullptr);
    EXPECT_EQ(kpti_profile_batch(profile, delivered.batch()), KPT_E_STATE);
}

TEST_F(Profile, TheLargestRowsOfManyThreadsAreKept)
{
    tape t = many_threads(MANY);
    for (const kpti_profile_sort sort : {KPTI_PROFILE_BY_TOTAL, KPTI_PROFILE_BY_MAX}) {
        take(t, KPTI_PROFILE_BY_THREAD);
        const std::vector<kpti_profile_row> all = rows(sort);
        kpti_profile_free(profile);
        for (const uint32_t most : {3U, static_cast<uint32_t>(HALF)}) {
            ASSERT_EQ(kpti_profile_open(&heap, KPTI_PROFILE_BY_THREAD, &profile), KPT_OK);
            kpti_profile_keep(profile, sort, most);
            ASSERT_EQ(kpti_profile_batch(profile, delivered.batch()), KPT_OK);
            const std::vector<kpti_profile_row> kept = rows(sort);
            ASSERT_GE(kept.size(), most);
            EXPECT_LT(kept.size(), all.size() * 3 / 4);
            for (uint32_t i = 0; i < most; i++) {
                EXPECT_EQ(kept[i].name, all[i].name);
                EXPECT_EQ(kept[i].thread, all[i].thread);
                EXPECT_NE(kpti_profile_thread(profile, kept[i].thread), nullptr);
            }
            kpti_profile_free(profile);
            profile = nullptr;
        }
    }
}

} // namespace
