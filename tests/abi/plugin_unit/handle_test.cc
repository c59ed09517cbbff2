/* handle_test.cc: the table of live objects, from one thread: handles are never reused, one call is inside
 * at a time, pins keep objects alive, the table's limit, and what last_error copies. */
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/abi/plugin_unit/handles.h"

namespace
{

const kpti_handle_kind THING = {"thing", nullptr};
const kpti_handle_kind OTHER = {"other thing", nullptr};
constexpr size_t LIMIT = 1024;

TEST(Handle, IsNeverZeroAndNeverUsedTwice)
{
    std::set<kpt_handle> seen;
    int object = 0;
    for (int i = 0; i < 5000; i++) {
        kpt_handle handle = make_handle(&THING, &object);
        EXPECT_NE(handle, 0U);
        EXPECT_TRUE(seen.insert(handle).second) << "used twice: " << handle;
        EXPECT_EQ(end_handle(handle, &THING), KPT_OK);
    }
}

TEST(Handle, MeansItsObjectUntilItEnds)
{
    int one = 1, two = 2;
    kpt_handle a = make_handle(&THING, &one), b = make_handle(&OTHER, &two);
    EXPECT_NE(a, b);
    kpti_call call;
    ASSERT_EQ(kpti_call_begin(&call, a, &THING), KPT_OK);
    EXPECT_EQ(call.object, &one);
    EXPECT_EQ(kpti_call_leave(&call, KPT_OK), KPT_OK);
    EXPECT_EQ(kpti_handle_peek(b, &OTHER), &two);
    EXPECT_EQ(kpti_handle_pin(b, &OTHER), &two);
    kpti_handle_unpin(b);
    EXPECT_EQ(end_handle(a, &THING), KPT_OK);
    EXPECT_EQ(kpti_handle_peek(b, &OTHER), &two) << "the other one lives on";
    EXPECT_EQ(end_handle(b, &OTHER), KPT_OK);
}

/* Checks that a handle which is dead or of another kind gives no access. */
void expect_dead(kpt_handle handle, const kpti_handle_kind *kind)
{
    kpti_call call;
    EXPECT_EQ(kpti_call_begin(&call, handle, kind), KPT_E_HANDLE) << handle;
    EXPECT_EQ(call.object, nullptr);
    EXPECT_EQ(kpti_handle_pin(handle, kind), nullptr) << handle;
    EXPECT_EQ(kpti_handle_peek(handle, kind), nullptr) << handle;
    kpti_handle_unpin(handle);
}

TEST(Handle, IsDeadAfterItsEndAlsoWhenItsPlaceIsTakenAgain)
{
    int object = 0;
    kpt_handle old = make_handle(&THING, &object);
    EXPECT_EQ(end_handle(old, &THING), KPT_OK);
    expect_dead(old, &THING);
    EXPECT_NE(text_of(old).find("no such object"), std::string::npos);
    kpt_handle next = make_handle(&THING, &object);
    EXPECT_EQ(next & 0xFFFF, old & 0xFFFF) << "the test means to reuse the place";
    expect_dead(old, &THING);
    kpti_error error = {"of nobody"};
    EXPECT_EQ(kpti_handle_fail(old, KPT_E_STATE, &error), KPT_E_STATE);
    EXPECT_EQ(text_of(next), "");
    EXPECT_EQ(end_handle(next, &THING), KPT_OK);
    EXPECT_EQ(end_handle(next, &THING), KPT_E_HANDLE);
}

TEST(Handle, OfAnotherKindOrMadeUpIsNone)
{
    int object = 0;
    kpt_handle live = make_handle(&THING, &object);
    const kpti_handle_kind same_noun = THING;
    expect_dead(live, &OTHER);
    expect_dead(live, &same_noun);
    for (kpt_handle handle :
         {kpt_handle{0}, kpt_handle{1}, kpt_handle{0xFFFF}, kpt_handle{0x10000}, ~kpt_handle{0},
          live + 1, live - 1, live ^ (kpt_handle{1} << 63), live + 0x10000, live + LIMIT})
        expect_dead(handle, &THING);
    EXPECT_EQ(end_handle(live, &THING), KPT_OK);
}

TEST(Handle, LetsOneCallInAtATime)
{
    int object = 0;
    kpt_handle handle = make_handle(&THING, &object);
    kpti_call first, second;
    ASSERT_EQ(kpti_call_begin(&first, handle, &THING), KPT_OK);
    EXPECT_EQ(kpti_call_begin(&second, handle, &THING), KPT_E_BUSY);
    EXPECT_NE(text_of(handle).find("another call on this thing has not returned"),
              std::string::npos);
    EXPECT_EQ(kpti_handle_peek(handle, &THING), &object) << "peek goes beside calls";
    EXPECT_EQ(kpti_call_leave(&first, KPT_OK), KPT_OK);
    EXPECT_EQ(kpti_call_begin(&second, handle, &THING), KPT_OK);
    EXPECT_EQ(kpti_call_end(&second), KPT_OK);
}

TEST(Handle, StaysWhilePinned)
{
    int object = 0;
    kpt_handle handle = make_handle(&THING, &object);
    EXPECT_EQ(kpti_handle_pin(handle, &THING), &object);
    EXPECT_EQ(kpti_handle_pin(handle, &THING), &object);
    EXPECT_EQ(end_handle(handle, &THING), KPT_E_STATE);
    EXPECT_NE(text_of(handle).find("2 objects"), std::string::npos) << text_of(handle);
    kpti_handle_unpin(handle);
    EXPECT_EQ(end_handle(handle, &THING), KPT_E_STATE);
    kpti_handle_unpin(handle);
    kpti_handle_unpin(handle); /* one too many does no harm */
    EXPECT_EQ(end_handle(handle, &THING), KPT_OK);
}

TEST(Handle, AreLimitedAndTheLimitIsNotFinal)
{
    std::vector<kpt_handle> handles;
    int object = 0;
    kpt_handle handle = 0;
    while (handles.size() <= LIMIT && kpti_handle_new(&THING, &object, "", &handle) == KPT_OK)
        handles.push_back(handle);
    EXPECT_EQ(handles.size(), LIMIT);
    handle = 12345;
    EXPECT_EQ(kpti_handle_new(&THING, &object, "", &handle), KPT_E_LIMIT);
    EXPECT_EQ(handle, 12345U) << "a failure writes nothing";
    EXPECT_EQ(std::set<kpt_handle>(handles.begin(), handles.end()).size(), handles.size());
    EXPECT_EQ(end_handle(handles.back(), &THING), KPT_OK);
    handles.back() = make_handle(&THING, &object);
    for (kpt_handle each : handles)
        EXPECT_EQ(end_handle(each, &THING), KPT_OK);
}

TEST(HandleError, IsTheOneOfTheLastCallThatFailed)
{
    int object = 0;
    kpt_handle handle = make_handle(&THING, &object, "at first");
    kpti_call call;
    EXPECT_EQ(text_of(handle), "at first");
    ASSERT_EQ(kpti_call_begin(&call, handle, &THING), KPT_OK);
    (void)kpti_fail(&call.error, 0, "it %s", "broke");
    EXPECT_EQ(text_of(handle), "at first") << "not before the call is over";
    EXPECT_EQ(kpti_call_leave(&call, KPT_E_IO), KPT_E_IO);
    EXPECT_EQ(text_of(handle), "it broke");
    ASSERT_EQ(kpti_call_begin(&call, handle, &THING), KPT_OK);
    EXPECT_EQ(kpti_call_leave(&call, KPT_OK), KPT_OK);
    EXPECT_EQ(text_of(handle), "it broke") << "success leaves it";
    kpti_error error = {"set from outside"};
    EXPECT_EQ(kpti_handle_fail(handle, KPT_E_LIMIT, &error), KPT_E_LIMIT);
    EXPECT_EQ(text_of(handle), "set from outside");
    EXPECT_EQ(end_handle(handle, &THING), KPT_OK);
}

TEST(HandleError, OfHandleZeroIsTheProcess)
{
    kpti_error error = {"the entry failed"};
    EXPECT_EQ(kpti_handle_fail(0, KPT_E_SIZE, &error), KPT_E_SIZE);
    EXPECT_EQ(text_of(0), "the entry failed");
}

TEST(HandleError, NeedsABufferOrNoSize)
{
    char buf[8] = "before";
    uint64_t needed = 0;
    int object = 0;
    kpt_handle handle = make_handle(&THING, &object, "a text");
    EXPECT_EQ(kpti_handle_last_error(handle, nullptr, 0, &needed), KPT_OK);
    EXPECT_EQ(needed, 6U);
    EXPECT_EQ(kpti_handle_last_error(handle, nullptr, 0, nullptr), KPT_OK);
    EXPECT_EQ(kpti_handle_last_error(handle, nullptr, 1, &needed), KPT_E_INVALID);
    EXPECT_EQ(kpti_handle_last_error(handle, buf, 0, &needed), KPT_OK);
    EXPECT_STREQ(buf, "before");
    EXPECT_EQ(end_handle(handle, &THING), KPT_OK);
}

/* Characters of one, two, three and four bytes. */
const char MIXED[] = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z";
const size_t MIXED_STARTS[] = {0, 1, 3, 6, 10, 11};

TEST(HandleError, IsCutBetweenCharacters)
{
    int object = 0;
    kpt_handle handle = make_handle(&THING, &object, MIXED);
    for (size_t size = 1; size <= sizeof MIXED + 2; size++) {
        char buf[sizeof MIXED + 8];
        uint64_t needed = 0;
        size_t whole = 0;
        for (size_t start : MIXED_STARTS)
            if (start < size) whole = start;
        memset(buf, '#', sizeof buf);
        EXPECT_EQ(kpti_handle_last_error(handle, buf, size, &needed), KPT_OK);
        EXPECT_EQ(needed, sizeof MIXED - 1);
        EXPECT_EQ(std::string(buf), std::string(MIXED, whole)) << "with a buffer of " << size;
        EXPECT_EQ(buf[size], '#') << "written past a buffer of " << size;
    }
    EXPECT_EQ(end_handle(handle, &THING), KPT_OK);
}

TEST(HandleError, LongerThanItsRoomIsCutBetweenCharactersToo)
{
    int object = 0;
    for (size_t lead = 0; lead < 4; lead++) { /* so that every truncation occurs once */
        std::string text(lead, 'a');
        while (text.size() < 2 * sizeof(kpti_error))
            text += "\xF0\x9F\x98\x80";
        kpt_handle handle = make_handle(&THING, &object, text.c_str());
        std::string first = text_of(handle);
        EXPECT_EQ((first.size() - lead) % 4, 0U) << "half a character at the end";
        EXPECT_GT(first.size(), sizeof(kpti_error) - 8);
        EXPECT_EQ(text.compare(0, first.size(), first), 0);
        kpti_call call;
        ASSERT_EQ(kpti_call_begin(&call, handle, &THING), KPT_OK);
        (void)kpti_fail(&call.error, 0, "%s", text.c_str());
        (void)kpti_call_leave(&call, KPT_E_IO);
        EXPECT_EQ(text_of(handle), first) << "and so when a call leaves it";
        uint64_t needed = 0;
        EXPECT_EQ(kpti_handle_last_error(handle, nullptr, 0, &needed), KPT_OK);
        EXPECT_EQ(needed, first.size());
        EXPECT_EQ(end_handle(handle, &THING), KPT_OK);
    }
}

struct forkable {
    int forked = 0;
};
const kpti_handle_kind FORKABLE = {"forkable",
                                   [](void *object) { static_cast<forkable *>(object)->forked++; }};

TEST(HandleFork, TellsEachObjectAndDropsCallsOfOtherThreads)
{
    forkable mine, theirs;
    int plain = 0;
    kpti_handles_watch_fork();
    kpti_handles_watch_fork(); /* again is no change: forked must run once */
    kpt_handle a = make_handle(&FORKABLE, &mine), b = make_handle(&FORKABLE, &theirs);
    kpt_handle c = make_handle(&THING, &plain);
    kpti_call ours, others;
    ASSERT_EQ(kpti_call_begin(&ours, a, &FORKABLE), KPT_OK);
    std::thread([&] { ASSERT_EQ(kpti_call_begin(&others, b, &FORKABLE), KPT_OK); }).join();
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        kpti_call again;
        int wrong = 0;
        wrong |= (mine.forked != 1 || theirs.forked != 1) << 0;
        wrong |= (kpti_call_begin(&again, a, &FORKABLE) != KPT_E_BUSY) << 1; /* we are inside */
        wrong |= (kpti_call_begin(&again, b, &FORKABLE) != KPT_OK) << 2;     /* no call is inside */
        wrong |= (end_handle(c, &THING) != KPT_OK) << 3;
        _exit(wrong);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(mine.forked + theirs.forked, 0) << "the parent goes on";
    kpti_call again;
    EXPECT_EQ(kpti_call_begin(&again, b, &FORKABLE), KPT_E_BUSY);
    EXPECT_EQ(kpti_call_end(&ours), KPT_OK);
    EXPECT_EQ(kpti_call_end(&others), KPT_OK);
    EXPECT_EQ(end_handle(c, &THING), KPT_OK);
}

} // namespace
