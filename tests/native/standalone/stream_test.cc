/* stream_test.cc: sessions whose recording is a .kpt file, while they run or afterwards; what signals and
 * forks do to them. */
#include "hosts/standalone/background/sigterm_flush.h"
#include "tests/native/standalone/standalone.h"

#include <csignal>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

namespace
{

class Stream : public Standalone
{
  protected:
    ~Stream() override
    {
        kpti_session_free(opened);
    }

    kpt_status start_streaming(uint64_t flush_ns = 0)
    {
        file = path("s.kpt");
        options.stream = file.c_str();
        options.flush_ns = flush_ns;
        options.info = kpt_str_of("answer=42\n");
        return start(sample);
    }
    kpt_status start_dumping(int signal_number)
    {
        file = path("dump.json");
        options.dump = file.c_str();
        options.dump_signal = static_cast<uint32_t>(signal_number);
        return start(sample);
    }
    kpt_status open(const std::string &name, int recover = 0)
    {
        kpti_session_free(opened);
        opened = nullptr;
        return kpti_session_open(sample, path(name).c_str(), recover, &opened, &error);
    }
    uint64_t calls_of(kpti_session *which)
    {
        EXPECT_EQ(kpti_session_count_calls(which, &count, &error), KPT_OK) << error.text;
        return count.calls;
    }
    uint32_t note(const char *name)
    {
        kpti_note n = {};
        n.what = KPTI_NOTE_MARK;
        n.name = kpt_str_of(name);
        return kpti_session_note(session, n);
    }
    /* How many notes the stream holds. */
    uint32_t notes_in_file()
    {
        kpti_kpt_reader reader;
        kpti_notes notes = {};
        kpt_chunk chunk;
        const char *why;
        EXPECT_EQ(kpti_kpt_open(&reader, file.c_str(), &why), 0);
        reader.notes = &notes;
        KPT_INIT(&chunk);
        while (kpti_kpt_next_chunk(&reader, &chunk) == KPT_OK)
            continue;
        const uint32_t found = notes.count;
        kpti_notes_free(&notes);
        kpti_kpt_unmap(&reader);
        return found;
    }
    static bool wait_for(const std::function<bool()> &holds)
    {
        for (int i = 0; i < 20000 && !holds(); i++)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return holds();
    }

    std::string file;
    kpti_session *opened = nullptr;
};

TEST_F(Stream, IsTheRecording)
{
    ASSERT_EQ(start_streaming(), KPT_OK) << error.text;
    EXPECT_EQ(note("a mark"), 1u);
    ASSERT_EQ(kpti_session_stop(session, &error), KPT_OK) << error.text;
    EXPECT_EQ(note("too late"), 0u);
    EXPECT_EQ(calls_of(session), 13u);
    ASSERT_EQ(write(path("t.json")), KPT_OK) << error.text;
    EXPECT_EQ(calls().size(), 13u);
    EXPECT_NE(content("t.json").find("a mark"), std::string::npos);
    ASSERT_EQ(open("s.kpt"), KPT_OK) << error.text;
    EXPECT_EQ(kpti_session_state(opened), KPTI_KPT_WHOLE);
    EXPECT_EQ(calls_of(opened), 13u);
    const kpt_str answer = kpti_kpt_info(kpti_session_info(opened), "answer");
    EXPECT_EQ(std::string(answer.data, answer.size), "42");
    EXPECT_NE(kpti_kpt_info(kpti_session_info(opened), "process").size, 0u);
}

TEST_F(Stream, CanBeWrittenWhileItRuns)
{
    ASSERT_EQ(start_streaming(), KPT_OK) << error.text;
    EXPECT_EQ(note("a mark"), 1u);
    ASSERT_EQ(write(path("t.json")), KPT_OK) << error.text;
    EXPECT_EQ(calls().size(), 13u);
    EXPECT_NE(content("t.json").find("a mark"), std::string::npos);
    ASSERT_EQ(write(path("copy.kpt")), KPT_OK) << error.text;
    ASSERT_EQ(open("copy.kpt"), KPT_OK) << error.text;
    EXPECT_EQ(kpti_session_state(opened), KPTI_KPT_WHOLE);
    EXPECT_EQ(calls_of(opened), 13u);
}

TEST_F(Stream, IsFlushedAtIntervals)
{
    ASSERT_EQ(start_streaming(1000000), KPT_OK) << error.text;
    EXPECT_EQ(note("a mark"), 1u);
    EXPECT_TRUE(wait_for([&] { return notes_in_file() == 1; }));
    ASSERT_EQ(open("s.kpt"), KPT_OK) << error.text;
    EXPECT_EQ(kpti_session_state(opened), KPTI_KPT_CUT_OFF) << "it is still being written";
    EXPECT_EQ(calls_of(opened), 13u);
}

TEST_F(Stream, AnIntervalMayBeAnyNumber)
{
    ASSERT_EQ(start_streaming(UINT64_MAX), KPT_OK) << error.text;
    EXPECT_EQ(kpti_session_stop(session, &error), KPT_OK) << "and its thread can be woken";
}

TEST_F(Stream, NotesOfManyThreadsAreAllThere)
{
    enum { THREADS = 4, EACH = 500 };
    ASSERT_EQ(start_streaming(1000000), KPT_OK) << error.text;
    std::vector<std::thread> threads;
    std::atomic<uint32_t> made{0};
    for (int t = 0; t < THREADS; t++)
        threads.emplace_back([&] {
            for (int i = 0; i < EACH; i++)
                made += note("n") != 0;
        });
    for (int i = 0; i < 5; i++)
        EXPECT_EQ(write(path("t.json")), KPT_OK) << error.text;
    for (std::thread &t : threads)
        t.join();
    EXPECT_EQ(made, static_cast<uint32_t>(THREADS * EACH));
    ASSERT_EQ(kpti_session_stop(session, &error), KPT_OK) << error.text;
    EXPECT_EQ(notes_in_file(), static_cast<uint32_t>(THREADS * EACH));
}

/* A flush drops from memory what it has written. */
TEST_F(Stream, NotesInTheFileAreNotInMemory)
{
    enum { ROUNDS = 20, EACH = 2000, MAX_GROWTH_BYTES = 500000 };
    const auto used_bytes = [] {
        const struct mallinfo2 info = mallinfo2(); /* zeroes under a sanitizer */
        return static_cast<int64_t>(info.uordblks + info.hblkhd);
    };
    int64_t first_round = 0;
    ASSERT_EQ(start_streaming(UINT64_MAX), KPT_OK) << error.text;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < EACH; i++)
            ASSERT_EQ(note("a note of some twenty-five"), round * EACH + i + 1);
        EXPECT_EQ(calls_of(session), 13u) << "which flushes";
        if (round == 0) first_round = used_bytes();
    }
    EXPECT_LT(used_bytes() - first_round, MAX_GROWTH_BYTES);
    ASSERT_EQ(kpti_session_stop(session, &error), KPT_OK) << error.text;
    EXPECT_EQ(notes_in_file(), static_cast<uint32_t>(ROUNDS * EACH));
}

TEST_F(Stream, APathThatCanNotBeWritten)
{
    for (const char *bad : {"/dev/full", "/nowhere/s.kpt"}) {
        options.stream = bad;
        EXPECT_EQ(start(sample), KPT_E_IO);
        EXPECT_NE(error.os_error, 0);
        EXPECT_EQ(session, nullptr);
    }
}

TEST_F(Stream, AFileThatIsDamagedOrNone)
{
    ASSERT_EQ(start_streaming(), KPT_OK);
    ASSERT_EQ(kpti_session_stop(session, &error), KPT_OK);
    std::string bytes = content("s.kpt");
    bytes[bytes.size() - 40] = static_cast<char>(bytes[bytes.size() - 40] ^ 1);
    make_file("damaged.kpt", bytes);
    EXPECT_EQ(open("damaged.kpt"), KPT_E_INVALID);
    EXPECT_TRUE(error_has("damaged at byte")) << error.text;
    EXPECT_EQ(opened, nullptr);
    ASSERT_EQ(open("damaged.kpt", 1), KPT_OK) << error.text;
    EXPECT_EQ(kpti_session_state(opened), KPTI_KPT_DAMAGED);
    EXPECT_LE(calls_of(opened), 13u);
    make_file("none.kpt", std::string(100, 'x'));
    EXPECT_EQ(open("none.kpt", 1), KPT_E_INVALID);
    EXPECT_EQ(open("missing.kpt", 1), KPT_E_IO);
    EXPECT_EQ(error.os_error, ENOENT);
}

TEST_F(Stream, AnotherPluginsFileIsRefused)
{
    ASSERT_EQ(start_streaming(), KPT_OK);
    ASSERT_EQ(kpti_session_stop(session, &error), KPT_OK);
    EXPECT_EQ(kpti_session_open(plugin, file.c_str(), 0, &opened, &error), KPT_E_UNSUPPORTED);
    EXPECT_TRUE(error_has("format")) << error.text;
    EXPECT_EQ(opened, nullptr);
}

TEST_F(Stream, DumpsAreNumberedBeforeTheSuffix)
{
    char name[PATH_MAX];
    ASSERT_EQ(start(sample), KPT_OK);
    const char *expected[][2] = {{"a/out.json", "a/out.1.json"},
                                 {"out.json.gz", "out.2.json.gz"},
                                 {"out.speedscope.json", "out.3.speedscope.json"},
                                 {"out.html", "out.4.html"},
                                 {"out.kpt", "out.5.kpt"},
                                 {"plain", "plain.6"}};
    for (const auto &each : expected) {
        kpti_session_number_path(session, each[0], name, sizeof name);
        EXPECT_STREQ(name, each[1]);
    }
}

void (*handler_of(int number))(int)
{
    struct sigaction now;
    EXPECT_EQ(sigaction(number, nullptr, &now), 0);
    return now.sa_handler;
}

TEST_F(Stream, ASignalDumps)
{
    ASSERT_EQ(start_dumping(SIGUSR2), KPT_OK) << error.text;
    ASSERT_EQ(raise(SIGUSR2), 0);
    EXPECT_TRUE(wait_for([&] { return exists("dump.1.json"); }));
    ASSERT_EQ(raise(SIGUSR2), 0);
    EXPECT_TRUE(wait_for([&] { return exists("dump.2.json"); }));
    EXPECT_EQ(read_json(content("dump.2.json"))["otherData"]["calls"].text, "13");
    ASSERT_EQ(kpti_session_stop(session, &error), KPT_OK);
    EXPECT_TRUE(handler_of(SIGUSR2) == SIG_DFL);
}

TEST_F(Stream, AHandlerOfSomebodyElseStays)
{
    auto before = signal(SIGUSR2, SIG_IGN);
    EXPECT_EQ(start_dumping(SIGUSR2), KPT_E_BUSY);
    EXPECT_TRUE(error_has("signal")) << error.text;
    EXPECT_EQ(session, nullptr);
    EXPECT_TRUE(handler_of(SIGUSR2) == SIG_IGN);
    signal(SIGUSR2, before);
}

TEST_F(Stream, OneSessionListensToASignal)
{
    ASSERT_EQ(start_dumping(SIGUSR2), KPT_OK);
    kpti_session *second = nullptr;
    EXPECT_EQ(kpti_session_start(sample, &args, &options, &second, &error), KPT_E_BUSY);
    kpti_session_free(session);
    session = nullptr;
    EXPECT_EQ(kpti_session_start(sample, &args, &options, &second, &error), KPT_OK) << error.text;
    kpti_session_free(second);
}

/* The status with which CHILD ends; a child of ours has no tests to report. */
int in_child(const std::function<int()> &child)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) _exit(child());
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(Stream, AForkLeavesTheFileToTheParent)
{
    ASSERT_EQ(start_streaming(1000000), KPT_OK);
    EXPECT_EQ(in_child([&] {
                  if (note("in the child") != 0) return 1;
                  if (kpti_session_stop(session, &error) != KPT_OK) return 2;
                  if (write(path("child.json")) != KPT_OK || count.calls != 0) return 3;
                  kpti_session_free(session);
                  return 0;
              }),
              0);
    EXPECT_EQ(note("in the parent"), 1u);
    ASSERT_EQ(kpti_session_stop(session, &error), KPT_OK) << error.text;
    EXPECT_EQ(notes_in_file(), 1u);
    EXPECT_EQ(calls_of(session), 13u);
}

/* As a worker does that traces itself, and knows nothing of its parent's session. */
TEST_F(Stream, AChildMayListenToTheSignalItself)
{
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer allows no threads in the child of a fork";
#endif
    ASSERT_EQ(start_dumping(SIGUSR2), KPT_OK);
    EXPECT_EQ(in_child([&] {
                  kpti_session *own = nullptr;
                  const std::string dump = path("own.json");
                  options.dump = dump.c_str();
                  if (kpti_session_start(sample, &args, &options, &own, &error) != KPT_OK) return 1;
                  (void)raise(SIGUSR2);
                  if (!wait_for([&] { return exists("own.1.json"); })) return 2;
                  kpti_session_free(own);
                  return 0;
              }),
              0)
        << error.text;
    ASSERT_EQ(raise(SIGUSR2), 0);
    EXPECT_TRUE(wait_for([&] { return exists("dump.1.json"); }));
}

/* A session that is stopping, and does not come to its end. */
TEST(Farewell, ASignalDoesNotWaitForEver)
{
    if (!getenv("KPYTRACE_TEST_LONG")) GTEST_SKIP() << "it takes ten seconds";
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (!child) {
        static kpti_sigterm_flush stopping = {};
        stopping.act = [](void *, const struct timespec *) { _exit(1); };
        if (kpti_sigterm_flush_add(&stopping) != 0) _exit(2);
        kpti_sigterm_flush_pause(&stopping);
        (void)kill(getpid(), SIGTERM);
        for (;;)
            (void)pause();
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

} // namespace
