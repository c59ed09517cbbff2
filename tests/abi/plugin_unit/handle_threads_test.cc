/* handle_threads_test.cc: eight threads use the table of live objects at the same time. The test writes
 * their shared data without its own lock, so that ThreadSanitizer detects a failure of the table's lock. */
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "tests/abi/plugin_unit/handles.h"

namespace
{

constexpr int HANDLE_THREADS = 8;
constexpr int HANDLE_ROUNDS = 4000;
const kpti_handle_kind SHARED_THING = {"thing", nullptr};

void on_all_threads(const std::function<void(int)> &work)
{
    std::vector<std::thread> threads;
    for (int i = 0; i < HANDLE_THREADS; i++)
        threads.emplace_back(work, i);
    for (auto &thread : threads)
        thread.join();
}

struct counter {
    long value = 0; /* written by whoever is inside */
};

TEST(HandleThreads, OneIsInsideAndTheOthersAreTold)
{
    counter shared;
    kpt_handle handle = make_handle(&SHARED_THING, &shared);
    std::atomic<long> entered{0}, refused{0};
    on_all_threads([&](int) {
        for (int i = 0; i < HANDLE_ROUNDS; i++) {
            kpti_call call;
            kpt_status status = kpti_call_begin(&call, handle, &SHARED_THING);
            if (status == KPT_OK) {
                static_cast<counter *>(call.object)->value++;
                (void)kpti_fail(&call.error, 0, "round %d", i);
                (void)kpti_call_leave(&call, i % 2 ? KPT_OK : KPT_E_IO);
                entered++;
            } else {
                EXPECT_EQ(status, KPT_E_BUSY);
                refused++;
            }
            if (i % 16 == 0) (void)text_of(handle);
        }
    });
    EXPECT_EQ(entered + refused, long{HANDLE_THREADS} * HANDLE_ROUNDS);
    EXPECT_EQ(shared.value, entered);
    EXPECT_EQ(end_handle(handle, &SHARED_THING), KPT_OK);
}

TEST(HandleThreads, EachHasItsOwnObjects)
{
    on_all_threads([](int thread) {
        for (int i = 0; i < HANDLE_ROUNDS; i++) {
            counter own;
            std::string text = std::to_string(thread) + " " + std::to_string(i);
            kpt_handle handle = make_handle(&SHARED_THING, &own, text.c_str());
            EXPECT_EQ(text_of(handle), text);
            EXPECT_EQ(kpti_handle_peek(handle, &SHARED_THING), &own);
            kpti_call call;
            ASSERT_EQ(kpti_call_begin(&call, handle, &SHARED_THING), KPT_OK);
            EXPECT_EQ(call.object, &own);
            (void)kpti_call_leave(&call, KPT_OK);
            EXPECT_EQ(end_handle(handle, &SHARED_THING), KPT_OK);
            EXPECT_EQ(kpti_handle_peek(handle, &SHARED_THING), nullptr);
        }
    });
}

/* One thread ends objects and makes new ones in the same slot. Two others peek with dead handles, and must
 * never get the new object. More threads would only keep the first from its processor: under
 * ThreadSanitizer for a minute and a half. */
TEST(HandleThreads, ADeadHandleDoesNotLeadToWhoTookItsPlace)
{
    counter object;
    std::atomic<kpt_handle> dead{0};
    std::atomic<bool> enough{false};
    std::atomic<long> led_astray{0};
    on_all_threads([&](int thread) {
        if (thread > 2) return;
        if (thread > 0) {
            while (!enough)
                if (kpti_handle_peek(dead.load(), &SHARED_THING)) led_astray++;
            return;
        }
        for (int i = 0; i < 50 * HANDLE_ROUNDS; i++) {
            kpt_handle handle = make_handle(&SHARED_THING, &object);
            EXPECT_EQ(end_handle(handle, &SHARED_THING), KPT_OK);
            dead = handle;
        }
        enough = true;
    });
    EXPECT_EQ(led_astray, 0);
}

TEST(HandleThreads, APinKeepsTheObjectFromEnding)
{
    for (int round = 0; round < HANDLE_ROUNDS / 40; round++) {
        auto *object = new counter;
        kpt_handle handle = make_handle(&SHARED_THING, object);
        std::atomic<int> ended{0};
        on_all_threads([&](int thread) {
            if (thread < HANDLE_THREADS / 2) {
                for (int i = 0; i < 40; i++) {
                    auto *pinned = static_cast<counter *>(kpti_handle_pin(handle, &SHARED_THING));
                    if (!pinned) break;
                    EXPECT_EQ(pinned->value, 0); /* freed memory, if the pin did not hold */
                    kpti_handle_unpin(handle);
                }
                return;
            }
            kpt_status status;
            do {
                status = end_handle(handle, &SHARED_THING);
                if (status == KPT_OK) ended++;
            } while (status == KPT_E_STATE || status == KPT_E_BUSY);
        });
        EXPECT_EQ(ended, 1) << "exactly one ends it";
        delete object;
    }
}

TEST(HandleThreads, ProcessErrorIsWhole)
{
    on_all_threads([](int thread) {
        for (int i = 0; i < HANDLE_ROUNDS; i++) {
            kpti_error error;
            memset(&error, 'a' + thread, sizeof error);
            error.text[sizeof error.text - 1] = 0;
            (void)kpti_handle_fail(0, KPT_E_IO, &error);
            std::string text = text_of(0);
            EXPECT_EQ(text.find_first_not_of(text[0]), std::string::npos) << "two texts mixed";
        }
    });
}

} // namespace
