/* live_writer_test.cc: the trace that is written during recording is equal to the trace that would be written
 * at the end. If the live writer fails, the trace is written at the end. */
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/native/execution_trace/limit.h"
#include "tests/native/execution_trace/observing.h"

static std::atomic<bool> disk_is_full;

/* Replaces the system's function, to simulate a full disk, or a disk that reports nothing. */
extern "C" int fstatvfs(int, struct statvfs *info)
{
    *info = {};
    info->f_blocks = disk_is_full;
    return 0;
}

namespace
{

namespace fs = std::filesystem;

/* The host's allocator, which has memory for the test's threads, and for others so many times. */
thread_local bool is_ours = false;
std::atomic<int64_t> others_left;
std::atomic<int64_t> bytes_held;

void *allocate(void *, uint64_t size)
{
    if (!is_ours && --others_left < 0) return nullptr;
    bytes_held += static_cast<int64_t>(size);
    return malloc(size);
}

void deallocate(void *, void *memory, uint64_t size)
{
    bytes_held -= static_cast<int64_t>(size);
    free(memory);
}

class LiveWriter : public Observing
{
  protected:
    /* Threads of ours that there are. */
    static size_t threads()
    {
        size_t count = 0;
        for (const auto &task : fs::directory_iterator("/proc/self/task")) {
            std::ifstream file(task.path() / "comm");
            std::string name;
            count += std::getline(file, name) && name == "kpytrace";
        }
        return count;
    }
    /* Returns whether there are soon none: a thread that was joined may be visible for a moment. */
    static bool have_ended()
    {
        for (int i = 0; i < 10000 && threads(); i++)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return threads() == 0;
    }
    /* Returns the bytes of the unfinished file, which has no name, or a temporary one. */
    off_t made() const
    {
        off_t bytes = 0;
        for (const auto &link : fs::directory_iterator("/proc/self/fd")) {
            std::error_code is_closed;
            const std::string file = fs::read_symlink(link.path(), is_closed).string();
            struct stat info;
            if (file.rfind(folder(), 0) != 0 || file.rfind(path("t.json.journal"), 0) == 0)
                continue;
            if (stat(link.path().c_str(), &info) == 0) bytes += info.st_size;
        }
        return bytes;
    }
    /* Returns whether a part of the journal is mapped, which also keeps it on the disk. */
    bool has_journal() const
    {
        std::ifstream maps("/proc/self/maps");
        for (std::string line; std::getline(maps, line);)
            if (line.find(path("t.json.journal")) != std::string::npos) return true;
        return false;
    }
    /* Runs nested operators, with repeated and new tensors. */
    void run_some(uint64_t thread, uint64_t round)
    {
        Values own;
        kpt_op op = op_of(round % 3 ? "outer" : "other");
        op.thread = thread;
        op.record_id = round;
        const kpt_value old = own.of(own.tensor(0x1000, {2, 3}));
        const kpt_value fresh = own.of(own.tensor((thread << 40) + round * 2, {4, 1, 5}));
        const uint64_t a =
            begin_op(op, {old, own.list({own.integer(static_cast<int64_t>(round)), old})});
        op.forward_thread = 1;
        const uint64_t b = begin_op(op, {own.real(0.5), own.boolean(round % 2), fresh});
        end_op(b, {fresh}, round % 100 ? "" : "an error");
        if (round % 50) end_op(a, {old, own.string("text")});
    }
    /* Records on three threads until a part of the file was made, or for so long. */
    template <class Function> void record_until(Function is_enough)
    {
        std::atomic<bool> is_over{false};
        std::vector<std::thread> all;
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        for (uint64_t thread = 1; thread <= 3; thread++) {
            all.emplace_back([this, thread, &is_over] {
                is_ours = true;
                for (uint64_t round = 1; !is_over; round++) {
                    run_some(thread, round);
                    if (round % 16 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                }
            });
        }
        while (!is_enough() && std::chrono::steady_clock::now() < end)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        EXPECT_TRUE(is_enough());
        is_over = true;
        for (std::thread &thread : all)
            thread.join();
    }
    /* Checks that the file is equal to the recovery of a copy of its journal, except for the fields of its
     * end. */
    void expect_same()
    {
        kpti_error text = {""};
        ASSERT_EQ(stop(), KPT_OK);
        make_file("copy.journal", content("t.json.journal"));
        ASSERT_EQ(close(), KPT_OK) << error;
        ASSERT_EQ(kpti_execution_trace.recover(self, path("copy.journal").c_str(),
                                               path("copy.json").c_str(), &text),
                  KPT_OK)
            << text.text;
        const std::string own = content("t.json");
        const std::string other = content("copy.json");
        const size_t nodes = own.find("],\"finish_ts\"");
        ASSERT_NE(nodes, std::string::npos);
        EXPECT_TRUE(own.substr(0, nodes) == other.substr(0, nodes));
        EXPECT_EQ(other.find("],\"finish_ts\""), nodes);
        const json t = read();
        expect_tree(t);
        EXPECT_EQ(t["kpytrace"]["complete"].text, "true");
        EXPECT_EQ(t["kpytrace"]["damaged"].text, "0");
        EXPECT_EQ(files(), 3U);
    }
};

/* Forks while it is at work. The two tests with many forks are the first of the program: a fork takes longer the more
 * memory a sanitizer has mapped, and threads record meanwhile. */
TEST_F(LiveWriter, ForksMayComeAtAnyTime)
{
    begin();
    int forks = 0;
    record_until([this, &forks] {
        in_a_child([] { return true; });
        return ++forks > 10 && made() > 200000;
    });
    expect_same();
}

/* The same while one file is closed and the next one opened. */
TEST_F(LiveWriter, ForksMayComeWhileItEnds)
{
    std::atomic<bool> is_over{false};
    make();
    std::thread forks([this, &is_over] {
        while (!is_over)
            in_a_child([] { return true; });
    });
    for (int file = 0; file < 50; file++) {
        EXPECT_EQ(open("t.json"), KPT_OK) << error;
        EXPECT_EQ(start(), KPT_OK);
        for (uint64_t round = 1; round < 100; round++)
            run_some(1, round);
        EXPECT_EQ(stop(), KPT_OK);
        EXPECT_EQ(close(), KPT_OK) << error;
    }
    is_over = true;
    forks.join();
    expect_tree(read());
}

TEST_F(LiveWriter, MakesWhatWouldBeMadeAtTheEnd)
{
    begin();
    record_until([this] { return made() > 500000; });
    expect_same();
    EXPECT_TRUE(have_ended());
}

TEST_F(LiveWriter, GoesOnOverStops)
{
    begin();
    for (off_t bytes : {100000, 300000, 500000}) {
        EXPECT_EQ(stop(), KPT_OK);
        run_some(1, 1); /* the live writer does not see it */
        EXPECT_EQ(start(), KPT_OK);
        EXPECT_LE(threads(), 1U);
        record_until([this, bytes] { return made() > bytes; });
    }
    expect_same();
}

/* A path that can't be replaced is written at the end. */
TEST_F(LiveWriter, IsThereWhileAFileIsOpen)
{
    make();
    for (const uint64_t rounds : {0U, 1U, 1000U}) {
        EXPECT_EQ(open("t.json"), KPT_OK);
        EXPECT_EQ(threads(), 1U);
        EXPECT_EQ(start(), KPT_OK);
        for (uint64_t round = 1; round <= rounds; round++)
            run_some(1, round);
        EXPECT_EQ(threads(), 1U);
        EXPECT_EQ(stop(), KPT_OK);
        EXPECT_EQ(close(), KPT_OK);
        EXPECT_TRUE(have_ended());
        EXPECT_FALSE(has_journal());
    }
    EXPECT_EQ(open("/dev/null"), KPT_OK);
    EXPECT_EQ(start(), KPT_OK);
    for (uint64_t round = 1; round < 1000; round++)
        run_some(1, round);
    EXPECT_EQ(threads(), 0U);
    EXPECT_EQ(stop(), KPT_OK);
    EXPECT_EQ(close(), KPT_OK);
    EXPECT_EQ(files(), 1U);
}

TEST_F(LiveWriter, WhereItHasNoMemoryTheFileIsMadeAtTheEnd)
{
    others_left = 0;
    is_ours = true;
    bytes_held = 0;
    env.host.alloc = allocate;
    env.host.dealloc = deallocate;
    begin();
    record_until([this] { return stats().journal_bytes > 1000000; });
    EXPECT_TRUE(have_ended()); /* the live writer has given up */
    expect_same();
    kpti_execution_trace.destroy(self);
    self = nullptr;
    EXPECT_EQ(bytes_held, 0);
}

/* Any of its allocations may fail; of the many later ones some are tried. */
TEST_F(LiveWriter, AnyOfItsAllocationsMayBeTheLast)
{
    int64_t count = 0;
    is_ours = true;
    bytes_held = 0;
    env.host.alloc = allocate;
    env.host.dealloc = deallocate;
    for (bool has_failed = true; has_failed && count < 5000; count += 1 + count / 8) {
        others_left = count;
        begin();
        for (uint64_t round = 1; round < 150; round++)
            run_some(1, round);
        for (int i = 0; i < 10000 && made() < 65536 && threads(); i++)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        has_failed = made() == 0;
        expect_same();
        kpti_execution_trace.destroy(self);
        self = nullptr;
        ASSERT_EQ(bytes_held, 0) << count;
        for (const char *name : {"t.json", "copy.json", "copy.journal"})
            fs::remove(path(name));
    }
    EXPECT_GT(count, 5);
    EXPECT_LT(count, 5000);
}

/* The size of files is limited, as on a full disk: the live writer's file is removed, and no record is
 * lost. */
TEST_F(LiveWriter, WhereItHasNoRoomTheFileIsMadeAtTheEnd)
{
    begin();
    record_until([this] { return made() > 200000; });
    {
        const Limit limit(stats().journal_bytes + (1 << 20));
        record_until([this] { return made() == 0; });
    }
    expect_same();
}

/* The address space is too short for the live writer: the recording threads get what is left. */
TEST_F(LiveWriter, WhereAddressesBecomeShortTheFileIsMadeAtTheEnd)
{
    const std::string text(4000, 'x');
    const uint64_t mapped = 64 << 20;
    {
        const Limit limit(addresses() + mapped + (40 << 20), RLIMIT_AS);
        begin();
        for (int i = 0; i < 40000 && stats().journal_bytes < mapped + (2 << 20); i++)
            run("op", {values.string(text.c_str())});
        EXPECT_TRUE(have_ended());
        for (int i = 0; i < 40000 && stats().journal_bytes < 2 * mapped; i++)
            run("op", {values.string(text.c_str())});
        EXPECT_EQ(stop(), KPT_OK);
    }
    EXPECT_EQ(stats().dropped, 0U);
    EXPECT_EQ(close(), KPT_OK) << error;
    EXPECT_NE(content("t.json").find("\"complete\":true"), std::string::npos);
}

/* The journal may need the space that the file would take. */
TEST_F(LiveWriter, BeforeTheDiskIsFullTheFileIsGivenUp)
{
    begin();
    record_until([this] { return made() > 200000; });
    disk_is_full = true;
    record_until([this] { return made() == 0; });
    expect_same(); /* at the end it is tried nevertheless */
    disk_is_full = false;
    EXPECT_EQ(stats().dropped, 0U);
}

/* The child does not have the thread; it records its own file, and the parent continues. */
TEST_F(LiveWriter, AForkLeavesItToTheParent)
{
    begin();
    record_until([this] { return made() > 200000; });
    EXPECT_TRUE(has_journal());
    in_a_child([this] {
        return threads() == 0 && made() == 0 && !has_journal() && record_own("child.json");
    });
    expect_tree(read("child.json"));
    fs::remove(path("child.json"));
    record_until([this] { return made() > 400000; });
    expect_same();
}

TEST_F(LiveWriter, AKilledProcessLeavesTheJournalOnly)
{
    const pid_t child = fork();
    if (child == 0) {
        begin();
        record_until([this] { return made() > 200000; });
        (void)kill(getpid(), SIGKILL);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(files(), 2U);
    EXPECT_EQ(read()["kpytrace"]["complete"].text, "false");
    make();
    kpti_error text = {""};
    EXPECT_EQ(kpti_execution_trace.recover(self, path("t.json.journal").c_str(),
                                           path("t.json").c_str(), &text),
              KPT_OK);
    expect_tree(read());
    EXPECT_EQ(read()["kpytrace"]["damaged"].text, "0"); /* nor is prepared space */
}

/* Recording threads find prepared space from the first operator on, and the disk usage stays at that. */
TEST_F(LiveWriter, MakesRoomForWhatComes)
{
    const auto bytes = [this] { return fs::file_size(path("t.json.journal")); };
    make();
    EXPECT_EQ(open("t.json"), KPT_OK);
    for (int i = 0; i < 10000 && bytes() <= stats().journal_bytes + (1 << 20); i++)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_GT(bytes(), stats().journal_bytes + (1 << 20));
    EXPECT_EQ(start(), KPT_OK);
    record_until([this, &bytes] { return bytes() > stats().journal_bytes + (1 << 20); });
    EXPECT_LE(bytes(), stats().journal_bytes + (2 << 20));
    expect_same();
}

} // namespace
