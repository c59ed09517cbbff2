/* thread_findings_test.cc: locks, threads that never ran, and tasks. Each kind of finding has a recording with that fault,
 * and some that are like it and have none. */
#include "tests/native/writers/findings/findings_case.h"

namespace
{

/* --- locks ------------------------------------------------------------------------------------- */

class Locks : public Findings
{
  protected:
    /* THREADS threads wait COUNT times NS in what WAIT calls, in a run of a second. */
    void waits(uint32_t threads, int count, int64_t ns, const std::vector<uint32_t> &chain,
               uint16_t kind = KPT_KIND_C)
    {
        const uint32_t update = python("update");
        for (uint32_t thread = 0; thread < threads; thread++) {
            t.thread("worker-" + std::to_string(thread));
            for (int i = 0; i < count; i++) {
                const int64_t at = i * (1000 * MS / count);
                t.enter(thread, update, at);
                for (const uint32_t name : chain)
                    t.enter(thread, name, at + 1000).kind =
                        name == chain.back() ? kind : static_cast<uint16_t>(KPT_KIND_PYTHON);
                for (size_t j = 0; j < chain.size(); j++)
                    t.leave(thread, at + 1000 + ns);
                t.leave(thread, at + 1000 * MS / count);
            }
        }
    }
    uint32_t acquire(const char *type = "_thread.lock")
    {
        return built_in("acquire", type);
    }
};

TEST_F(Locks, ThatThreadsWaitForAreFound)
{
    waits(4, 10, 20 * MS, {acquire()});
    const json made = found();
    ASSERT_EQ(kinds(made), "lock");
    EXPECT_EQ(evidence(made, "threads"), 4);
    EXPECT_EQ(evidence(made, "count"), 40);
    EXPECT_EQ(evidence(made, "total_ns"), 800e6);
    EXPECT_EQ(evidence(made, "longest_ns"), 20e6);
    const json &place = made["findings"].items[0]["places"].items.at(0);
    EXPECT_EQ(place["ns"].number(), 20e6);
    EXPECT_EQ(place["thread"].text, "worker-0");
    EXPECT_NE(made["findings"].items[0]["text"].text.find(
                  "4 threads waited 800.000 ms together, 20.0 % of their time, in 40 calls of "
                  "_thread.lock.acquire, called by update (app/work.py:7)"),
              std::string::npos)
        << made["findings"].items[0]["text"].text;
}

TEST_F(Locks, AreNamedByTheLibrarysFunction)
{
    waits(2, 10, 20 * MS,
          {library("threading.py", "acquire"), library("threading.py", "wait"), acquire()});
    const json made = found();
    ASSERT_EQ(kinds(made), "lock");
    EXPECT_EQ(made["findings"].items[0]["evidence"]["in"]["short"].text,
              "acquire (python3.12/threading.py:7)");
    EXPECT_EQ(made["findings"].items[0]["evidence"]["by"]["short"].text, "update (app/work.py:7)");
}

/* Many threads wait a little: together it is much of the run, but little of their time. */
TEST_F(Locks, ThatTakeLittleOfTheirThreadsTimeAreNone)
{
    waits(20, 10, 4 * MS, {acquire()});
    EXPECT_EQ(kinds(), "");
    EXPECT_EQ(found()["waits"].items.at(0)["total_ns"].number(), 800e6);
}

TEST_F(Locks, OfOneThreadAreNone)
{
    waits(1, 10, 50 * MS, {acquire()});
    EXPECT_EQ(kinds(), "");
    EXPECT_EQ(found()["waits"].items.at(0)["for"].text, "lock");
}

TEST_F(Locks, AcquiredQuicklyAreNone)
{
    waits(4, 2000, 90 * 1000, {acquire()}); /* 720 ms together, but each is short */
    EXPECT_EQ(kinds(), "");
    EXPECT_TRUE(found()["waits"].items.empty());
}

/* The threads of a pool wait for work all the time. */
TEST_F(Locks, QueuesAndConditionsAreWaitsForWork)
{
    waits(4, 10, 90 * MS, {library("queue.py", "get"), library("threading.py", "wait"), acquire()});
    const json made = found();
    EXPECT_EQ(kinds(made), "");
    const json &row = made["waits"].items.at(0);
    EXPECT_EQ(row["for"].text, "other thread");
    EXPECT_EQ(row["in"]["short"].text, "get (python3.12/queue.py:7)");
    EXPECT_EQ(row["by"]["short"].text, "update (app/work.py:7)");
    EXPECT_EQ(row["count"].number(), 40);
    EXPECT_EQ(row["threads"].number(), 4);
    EXPECT_EQ(row["total_ns"].number(), 3600e6);
}

TEST_F(Locks, OfTheProgramsOwnModulesOfThatNameAreItsOwn)
{
    waits(2, 10, 20 * MS, {python("get", "/srv/app/queue.py"), acquire()});
    const json made = found();
    ASSERT_EQ(kinds(made), "lock");
    EXPECT_EQ(made["findings"].items[0]["evidence"]["by"]["short"].text, "get (app/queue.py:7)");
}

TEST_F(Locks, OtherWaitsAreNamed)
{
    waits(2, 10, 20 * MS, {built_in("sleep")});
    EXPECT_EQ(kinds(), "");
    EXPECT_EQ(found()["waits"].items.at(0)["for"].text, "sleep");
    t = tape();
    waits(2, 10, 20 * MS, {library("selectors.py", "select"), built_in("poll", "select.epoll")});
    EXPECT_EQ(found()["waits"].items.at(0)["for"].text, "input or output");
    EXPECT_EQ(found()["modules"].items.at(1)["module"].text, "waits");
}

/* --- threads that never ran --------------------------------------------------------------------- */

class IdleThreads : public Findings
{
  protected:
    uint32_t bootstrap = 0, worker = 0, get = 0, wait = 0, acquire = 0, work = 0;
    void SetUp() override
    {
        Findings::SetUp();
        names();
    }
    void names()
    {
        bootstrap = library("threading.py", "_bootstrap");
        worker = python("worker");
        get = library("queue.py", "get");
        wait = library("threading.py", "wait");
        acquire = built_in("acquire", "_thread.lock");
        work = python("work");
    }
    void get_item(uint32_t thread, int64_t from, int64_t to)
    {
        t.enter(thread, get, from);
        t.enter(thread, wait, from + 10);
        call(thread, acquire, from + 20, to - from - 40, KPT_KIND_C);
        t.leave(thread, to - 10);
        t.leave(thread, to);
    }
    /* A thread that waits for ITEMS items and ends then. */
    void thread(int items)
    {
        const uint32_t number = t.thread("worker-" + std::to_string(next++));
        t.enter(number, bootstrap, 0);
        t.enter(number, worker, 100);
        for (int i = 0; i < items; i++) {
            get_item(number, 1000 + i * MS, 1000 + i * MS + MS / 2);
            call(number, work, 1000 + i * MS + MS / 2, MS / 4);
        }
        get_item(number, 1000 + items * MS, 500 * MS);
        t.leave(number, 500 * MS + 100);
        t.leave(number, 500 * MS + 200);
    }
    int next = 0;
};

TEST_F(IdleThreads, AreFound)
{
    for (int i = 0; i < 8; i++)
        thread(i < 3);
    const json made = found();
    ASSERT_EQ(kinds(made), "idle_threads");
    EXPECT_EQ(evidence(made, "idle_threads"), 5);
    EXPECT_EQ(evidence(made, "threads"), 8);
    EXPECT_NE(made["findings"].items[0]["text"].text.find("5 of the 8 threads"), std::string::npos);
}

TEST_F(IdleThreads, ThatRanOnceAreNone)
{
    for (int i = 0; i < 8; i++)
        thread(1);
    EXPECT_EQ(kinds(), "");
}

TEST_F(IdleThreads, OneIsNone)
{
    for (int i = 0; i < 8; i++)
        thread(i < 7);
    EXPECT_EQ(kinds(), "");
}

/* A timer waits in the library, and then runs a function that may call nothing. */
TEST_F(IdleThreads, TimersThatRanAreNone)
{
    for (uint32_t i = 0; i < 4; i++) {
        t.thread("timer");
        t.enter(i, bootstrap, 0);
        t.enter(i, wait, 100);
        call(i, acquire, 200, 300 * MS, KPT_KIND_C);
        t.leave(i, 300 * MS + 300);
        call(i, work, 300 * MS + 400, 100);
        t.leave(i, 300 * MS + 600);
    }
    EXPECT_EQ(kinds(), "");
}

/* --- tasks ------------------------------------------------------------------------------------- */

class Tasks : public Findings
{
  protected:
    void resume(uint32_t number, int64_t at, int64_t ns)
    {
        t.enter(0, answer, at);
        t.point(0, number, at);
        t.enter(0, parse, at + 10);
        call(0, loads, at + 20, ns - 40, KPT_KIND_C);
        t.leave(0, at + ns - 10);
        t.leave(0, at + ns);
    }
    uint32_t answer = 0, parse = 0, loads = 0;
    void SetUp() override
    {
        Findings::SetUp();
        answer = python("answer");
        parse = python("parse");
        loads = built_in("loads");
        t.thread("MainThread");
    }
};

TEST_F(Tasks, ThatBlockTheLoopAreFound)
{
    const uint32_t one = task("Task-1", "answer"), two = task("Task-2", "answer");
    resume(one, 0, 50 * MS);
    resume(two, 100 * MS, 300 * MS);
    resume(one, 500 * MS, 150 * MS);
    const json made = found();
    ASSERT_EQ(kinds(made), "blocked_loop");
    EXPECT_EQ(evidence(made, "count"), 2);
    EXPECT_EQ(evidence(made, "total_ns"), 450e6);
    EXPECT_EQ(evidence(made, "longest_ns"), 300e6);
    EXPECT_EQ(made["findings"].items[0]["evidence"]["task"].text, "Task-2");
    EXPECT_EQ(made["findings"].items[0]["evidence"]["in"]["short"].text, "loads (built-in)");
    EXPECT_EQ(made["findings"].items[0]["places"].items[0]["at_ns"].number(), 100e6);
}

TEST_F(Tasks, ThatGiveWayAreNone)
{
    const uint32_t one = task("Task-1", "answer");
    for (int i = 0; i < 20; i++)
        resume(one, i * 100 * MS, 99 * MS);
    EXPECT_EQ(kinds(), "");
}

TEST_F(Tasks, EachCoroutineIsAFindingAndThreeAreListed)
{
    for (const char *coroutine : {"a", "b", "c", "d"}) {
        const int64_t number = coroutine[0] - 'a';
        resume(task("Task", coroutine), number * 1000 * MS, (150 + number * 10) * MS);
    }
    const json made = found();
    ASSERT_EQ(kinds(made), "blocked_loop blocked_loop blocked_loop");
    EXPECT_EQ(made["findings"].items[0]["evidence"]["coroutine"].text, "d");
}

} // namespace
