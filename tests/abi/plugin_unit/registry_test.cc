/* registry_test.cc: added factories: the newest is called first, the next one is called if it declines, and
 * a factory can be removed at any time, also from inside it and by other threads. */
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "tests/abi/plugin_unit/private.h"

namespace
{

/* The registry never calls a factory's make itself; it passes make to the caller. */
void some_make(void) {}

/* A factory of the test: its result, and what it does when it is called. */
struct factory {
    kpt_status answer = KPT_DECLINED;
    std::function<void()> when_asked;
    int number = 0;
};

kpt_status ask(kpt_any_fn make, void *make_ctx, void *job)
{
    auto *f = static_cast<factory *>(make_ctx);
    EXPECT_EQ(make, &some_make);
    if (job) static_cast<std::vector<int> *>(job)->push_back(f->number);
    if (f->when_asked) f->when_asked();
    return f->answer;
}

class Registry : public testing::Test
{
  protected:
    uint64_t add(factory *added, uint32_t kind = KPT_FACTORY_TRACER)
    {
        uint64_t token = 0;
        EXPECT_EQ(kpti_registry_add(&registry, kind, some_make, added, &token), KPT_OK);
        return token;
    }
    kpt_status ask_all(uint32_t kind = KPT_FACTORY_TRACER)
    {
        asked.clear();
        return kpti_registry_ask(&registry, kind, ask, &asked);
    }

    kpti_registry registry = {};
    std::vector<int> asked;
    factory f[4] = {
        {KPT_DECLINED, {}, 0}, {KPT_DECLINED, {}, 1}, {KPT_DECLINED, {}, 2}, {KPT_DECLINED, {}, 3}};
};

using order = std::vector<int>;

TEST_F(Registry, EmptyDeclines)
{
    EXPECT_EQ(ask_all(), KPT_DECLINED);
    EXPECT_EQ(asked, order{});
}

TEST_F(Registry, NewestIsAskedFirstAndTheFirstAnswerCounts)
{
    for (auto &each : f)
        add(&each);
    EXPECT_EQ(ask_all(), KPT_DECLINED);
    EXPECT_EQ(asked, (order{3, 2, 1, 0}));
    f[1].answer = KPT_OK;
    f[0].answer = KPT_E_IO;
    EXPECT_EQ(ask_all(), KPT_OK);
    EXPECT_EQ(asked, (order{3, 2, 1}));
    f[3].answer = KPT_E_BUSY;
    EXPECT_EQ(ask_all(), KPT_E_BUSY) << "an error is an answer too";
    EXPECT_EQ(asked, order{3});
}

TEST_F(Registry, AFreedPlaceDoesNotMakeItsNextFactoryOld)
{
    uint64_t first = add(&f[0]);
    add(&f[1]);
    EXPECT_EQ(kpti_registry_remove(&registry, first), KPT_OK);
    uint64_t token = add(&f[2]); /* reuses the first slot, and is the newest nevertheless */
    EXPECT_GT(token, first);
    EXPECT_EQ(ask_all(), KPT_DECLINED);
    EXPECT_EQ(asked, (order{2, 1}));
}

TEST_F(Registry, KindsAreApart)
{
    add(&f[1], KPT_FACTORY_TRACER);
    add(&f[2], KPT_FACTORY_MEMORY);
    add(&f[3], KPT_FACTORY_OBSERVER);
    for (uint32_t kind : {KPT_FACTORY_TRACER, KPT_FACTORY_MEMORY, KPT_FACTORY_OBSERVER}) {
        EXPECT_EQ(ask_all(kind), KPT_DECLINED);
        EXPECT_EQ(asked, order{static_cast<int>(kind)});
    }
    EXPECT_EQ(ask_all(4), KPT_DECLINED);
    EXPECT_EQ(asked, order{});
}

TEST_F(Registry, RefusesWhatItCanNotKeep)
{
    uint64_t token = 99;
    EXPECT_EQ(kpti_registry_add(&registry, KPT_FACTORY_TRACER, nullptr, f, &token), KPT_E_INVALID);
    EXPECT_EQ(kpti_registry_add(&registry, KPT_FACTORY_TRACER, some_make, f, nullptr),
              KPT_E_INVALID);
    for (uint32_t kind : {0U, 4U, 0xFFFFFFFFU})
        EXPECT_EQ(kpti_registry_add(&registry, kind, some_make, f, &token), KPT_E_UNSUPPORTED);
    EXPECT_EQ(token, 99U);
    EXPECT_EQ(ask_all(), KPT_DECLINED);
    EXPECT_EQ(asked, order{});
}

TEST_F(Registry, RemoveKnowsItsTokens)
{
    uint64_t token = add(&f[0]);
    for (uint64_t unknown : {uint64_t{0}, token + 1, UINT64_MAX})
        EXPECT_EQ(kpti_registry_remove(&registry, unknown), KPT_E_HANDLE);
    EXPECT_EQ(kpti_registry_remove(&registry, token), KPT_OK);
    EXPECT_EQ(kpti_registry_remove(&registry, token), KPT_E_HANDLE);
    EXPECT_EQ(ask_all(), KPT_DECLINED);
    EXPECT_EQ(asked, order{});
}

TEST_F(Registry, IsFullAtItsLimitUntilOneGoes)
{
    std::vector<uint64_t> tokens;
    uint64_t token = 0;
    for (int i = 0; i < KPTI_MAX_FACTORIES; i++)
        tokens.push_back(add(&f[0]));
    EXPECT_EQ(kpti_registry_add(&registry, KPT_FACTORY_MEMORY, some_make, f, &token), KPT_E_LIMIT);
    EXPECT_EQ(token, 0U);
    EXPECT_EQ(ask_all(), KPT_DECLINED);
    EXPECT_EQ(asked.size(), size_t{KPTI_MAX_FACTORIES});
    EXPECT_EQ(kpti_registry_remove(&registry, tokens[7]), KPT_OK);
    EXPECT_GT(add(&f[1]), tokens.back());
}

TEST_F(Registry, OneThatIsBeingAskedIsBusyAndThenGone)
{
    add(&f[0]);
    uint64_t token = add(&f[1]);
    f[1].when_asked = [&] {
        EXPECT_EQ(kpti_registry_remove(&registry, token), KPT_E_BUSY);
        EXPECT_EQ(kpti_registry_remove(&registry, token), KPT_E_BUSY);
        std::vector<int> inner; /* a nested request does not call it again */
        EXPECT_EQ(kpti_registry_ask(&registry, KPT_FACTORY_TRACER, ask, &inner), KPT_DECLINED);
        EXPECT_EQ(inner, order{0});
    };
    EXPECT_EQ(ask_all(), KPT_DECLINED);
    EXPECT_EQ(asked, (order{1, 0}));
    EXPECT_EQ(ask_all(), KPT_DECLINED);
    EXPECT_EQ(asked, order{0});
    EXPECT_EQ(kpti_registry_remove(&registry, token), KPT_OK) << "now make_ctx may be freed";
    EXPECT_EQ(kpti_registry_remove(&registry, token), KPT_E_HANDLE);
}

TEST_F(Registry, OneThatIsBeingRemovedKeepsItsPlaceUntilThen)
{
    uint64_t token = add(&f[0]), other = 0;
    f[0].when_asked = [&] {
        EXPECT_EQ(kpti_registry_remove(&registry, token), KPT_E_BUSY);
        for (int i = 1; i < KPTI_MAX_FACTORIES; i++)
            add(&f[1]);
        EXPECT_EQ(kpti_registry_add(&registry, KPT_FACTORY_TRACER, some_make, &f[1], &other),
                  KPT_E_LIMIT);
    };
    EXPECT_EQ(ask_all(), KPT_DECLINED);
    EXPECT_EQ(asked, order{0}) << "what is added meanwhile is newer than what was asked";
}

TEST_F(Registry, AnOlderOneRemovedMeanwhileIsNotAsked)
{
    uint64_t oldest = add(&f[0]);
    add(&f[1]);
    add(&f[2]);
    f[2].when_asked = [&] { EXPECT_EQ(kpti_registry_remove(&registry, oldest), KPT_OK); };
    EXPECT_EQ(ask_all(), KPT_DECLINED);
    EXPECT_EQ(asked, (order{2, 1}));
}

/* Four threads add, remove and free their factories; four request objects. A factory that is called after
 * remove returned KPT_OK reads freed memory, which the sanitizers report and the mark below shows. */
struct short_lived {
    static constexpr uint64_t ALIVE = 0x616c697665;
    uint64_t mark = ALIVE;
};

kpt_status ask_short_lived(kpt_any_fn, void *make_ctx, void *job)
{
    EXPECT_EQ(static_cast<short_lived *>(make_ctx)->mark, short_lived::ALIVE);
    ++*static_cast<long *>(job);
    return KPT_DECLINED;
}

TEST_F(Registry, ChangesBesideQuestionsOfOtherThreads)
{
    constexpr int EACH = 4;
    constexpr int ROUNDS = 400;
    std::vector<std::thread> threads;
    std::atomic<int> changing{EACH};
    std::atomic<long> questions{0};
    for (int i = 0; i < EACH; i++)
        threads.emplace_back([&] {
            for (int round = 0; round < ROUNDS; round++) {
                auto *own = new short_lived;
                uint64_t token = 0;
                ASSERT_EQ(
                    kpti_registry_add(&registry, KPT_FACTORY_OBSERVER, some_make, own, &token),
                    KPT_OK);
                if (round % 3 == 0) std::this_thread::yield();
                kpt_status status;
                while ((status = kpti_registry_remove(&registry, token)) == KPT_E_BUSY)
                    std::this_thread::yield();
                EXPECT_EQ(status, KPT_OK);
                own->mark = 0;
                delete own;
            }
            changing--;
        });
    for (int i = 0; i < EACH; i++)
        threads.emplace_back([&] {
            long asked_here = 0;
            while (changing > 0)
                EXPECT_EQ(kpti_registry_ask(&registry, KPT_FACTORY_OBSERVER, ask_short_lived,
                                            &asked_here),
                          KPT_DECLINED);
            questions += asked_here;
        });
    for (auto &thread : threads)
        thread.join();
    EXPECT_GT(questions, 0);
    for (const auto &place : registry.factories)
        EXPECT_EQ(place.token, 0U) << "every place is free again";
}

} // namespace
