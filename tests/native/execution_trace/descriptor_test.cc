/* descriptor_test.cc: the program closes our descriptors, opens files that get their numbers, or has none
 * of 0, 1 and 2. Its files stay unchanged, and the trace is as complete as possible. Issue 23. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <functional>
#include <utility>

#include "core/base/file_descriptor.h"
#include "execution_trace/journal/journal.h"
#include "tests/native/execution_trace/limit.h"
#include "tests/native/execution_trace/observing.h"

namespace
{

/* Runs once, in the next call by which a journal reserves space. */
std::function<void(int fd)> in_reservation;

int reserve(int fd, int mode, off_t at, off_t size)
{
    if (in_reservation) std::exchange(in_reservation, nullptr)(fd);
    return static_cast<int>(syscall(SYS_fallocate, fd, mode, at, size));
}

/* Runs once, when the next new file has been opened. */
std::function<void(int fd)> after_open;

int open_file(const char *path, int flags, mode_t mode)
{
    const auto fd = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
    const bool is_new = flags & O_EXCL || (flags & O_TMPFILE) == O_TMPFILE;
    if (fd >= 0 && is_new && after_open) std::exchange(after_open, nullptr)(fd);
    return fd;
}

mode_t mode_of(int flags, va_list rest)
{
    const bool has_mode = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
    return has_mode ? va_arg(rest, mode_t) : 0;
}

} // namespace

/* In place of libc's, for all tests of this program. */
extern "C" int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = mode_of(flags, rest);
    va_end(rest);
    return open_file(path, flags, mode);
}
extern "C" int fallocate(int fd, int mode, off_t at, off_t size)
{
    return reserve(fd, mode, at, size);
}
extern "C" int posix_fallocate(int fd, off_t at, off_t size)
{
    return reserve(fd, 0, at, size) ? errno : 0;
}

namespace
{

class Descriptor : public Observing
{
  protected:
    ~Descriptor() override
    {
        for (int fd : theirs)
            (void)::close(fd);
    }

    /* As a daemon does; files that it opens later get the numbers of the closed ones. */
    void close_all()
    {
        for (int fd = 3; fd < 100; fd++)
            (void)::close(fd);
        for (int i = 0; i < FILES; i++) {
            const int fd = ::open(path("own" + std::to_string(i)).c_str(), O_RDWR | O_CREAT, 0600);
            ASSERT_EQ(::write(fd, "mine", 4), 4);
            theirs.push_back(fd);
        }
    }

    void expect_theirs_untouched()
    {
        for (int i = 0; i < FILES; i++) {
            EXPECT_EQ(content("own" + std::to_string(i)), "mine");
            EXPECT_NE(fcntl(theirs[static_cast<size_t>(i)], F_GETFD), -1) << "it was closed";
        }
    }

    /* More than fits into a chunk. */
    void run_many()
    {
        const std::string text(300, 'x');
        for (int i = 0; i < MANY; i++)
            run("many", {values.string(text.c_str())});
    }

    static size_t count(const json &trace, std::string_view name)
    {
        size_t found = 0;
        for (const json &node : trace["nodes"].items)
            found += node["name"].text == name;
        return found;
    }

    enum { FILES = 20, MANY = 10000 };
    std::vector<int> theirs;
};

TEST_F(Descriptor, ClosedByTheProgramItIsOpenedAgain)
{
    begin();
    run("before");
    close_all();
    run_many();
    const json t = finish();
    expect_tree(t);
    EXPECT_EQ(count(t, "before"), 1U);
    EXPECT_EQ(count(t, "many"), static_cast<size_t>(MANY));
    EXPECT_EQ(stats().dropped, 0U);
    expect_theirs_untouched();
    EXPECT_FALSE(exists("t.json.journal"));
}

/* The live writer's file, which has no name, is lost; the trace is made from the journal. */
TEST_F(Descriptor, ClosedWhenAllIsRecorded)
{
    begin();
    run_many();
    EXPECT_EQ(stop(), KPT_OK);
    close_all();
    const json t = finish();
    expect_tree(t);
    EXPECT_EQ(count(t, "many"), static_cast<size_t>(MANY));
    expect_theirs_untouched();
}

TEST_F(Descriptor, WithoutAJournalThatHasANameWhatIsMappedIsKept)
{
    begin();
    run("before");
    std::filesystem::remove(path("t.json.journal"));
    make_file("t.json.journal", "theirs");
    close_all();
    run_many();
    EXPECT_GT(stats().dropped, 0U);
    EXPECT_EQ(stop(), KPT_OK);
    EXPECT_EQ(close(), KPT_E_IO);
    EXPECT_NE(error.find("closed the descriptor"), std::string::npos) << error;
    const json t = read();
    expect_tree(t);
    EXPECT_EQ(count(t, "before"), 1U);
    EXPECT_EQ(count(t, "many") + stats().dropped, static_cast<size_t>(MANY));
    EXPECT_EQ(t["kpytrace"]["damaged"].text, "0");
    expect_theirs_untouched();
    EXPECT_EQ(content("t.json.journal"), "theirs");
    begin("u.json"); /* and the next one is as good as ever */
    run("op");
    expect_tree(finish("u.json"));
}

TEST_F(Descriptor, NothingIsReportedWhereNothingIsMissing)
{
    begin();
    run("before");
    std::filesystem::remove(path("t.json.journal"));
    close_all();
    const json t = finish();
    EXPECT_EQ(count(t, "before"), 1U);
    EXPECT_EQ(t["kpytrace"]["complete"].text, "true");
}

/* Chunks that were full were unmapped. */
TEST_F(Descriptor, LostWhereAddressesAreShort)
{
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "AddressSanitizer's own allocations fail here, and then it hangs now and then";
#endif
    const std::string text(4000, 'x');
    {
        const Limit limit(addresses() + (48 << 20), RLIMIT_AS);
        begin();
        for (int i = 0; i < MANY; i++)
            run("op", {values.string(text.c_str())});
        std::filesystem::remove(path("t.json.journal"));
        close_all();
        EXPECT_EQ(stop(), KPT_OK);
        EXPECT_EQ(close(), KPT_E_IO);
    }
    const json t = read();
    EXPECT_LT(count(t, "op"), static_cast<size_t>(MANY));
    EXPECT_GT(count(t, "op"), 0U);
    expect_theirs_untouched();
}

TEST_F(Descriptor, AStartWithoutOneFails)
{
    begin("/dev/null"); /* the journal has no name */
    run_many();
    EXPECT_EQ(stop(), KPT_OK);
    close_all();
    for (int i = 0; i < 3000 && start() == KPT_OK; i++) /* until no start fits */
        EXPECT_EQ(stop(), KPT_OK);
    EXPECT_NE(error.find("Bad file descriptor"), std::string::npos) << error;
    EXPECT_EQ(close(), KPT_E_IO);
    expect_theirs_untouched();
}

class Opening : public Descriptor
{
  protected:
    /* The program closes the descriptor that is opened next, and a file of its own gets the number. */
    void take_the_next()
    {
        after_open = [this](int fd) {
            const int own = ::open(path("own").c_str(), O_RDWR | O_CREAT, 0600);
            ASSERT_EQ(::write(own, "mine", 4), 4);
            ASSERT_EQ(dup2(own, fd), fd);
            ASSERT_EQ(::close(own), 0);
            theirs.push_back(fd);
        };
    }
    void expect_own_untouched()
    {
        EXPECT_FALSE(after_open) << "nothing was opened";
        EXPECT_EQ(content("own"), "mine");
        for (int fd : theirs)
            EXPECT_NE(fcntl(fd, F_GETFD), -1) << "it was closed";
    }

    kpti_file_id id;
};

TEST_F(Opening, TheJournalIsOpenedAgain)
{
    take_the_next();
    begin();
    run("op");
    EXPECT_EQ(count(finish(), "op"), 1U);
    expect_own_untouched();
}

/* The file has no name while it grows. */
TEST_F(Opening, TheFileIsOpenedAgain)
{
    const std::string beside = folder();
    for (const int flags : {O_RDWR | O_TMPFILE, O_RDWR | O_CREAT | O_EXCL}) {
        const std::string name = flags & O_EXCL ? path("new") : beside;
        take_the_next();
        const int fd = kpti_descriptor_open_new(name.c_str(), flags, 0600, &id);
        ASSERT_GE(fd, 0);
        EXPECT_EQ(::write(fd, "ours", 4), 4);
        expect_own_untouched();
        EXPECT_EQ(kpti_descriptor_close(&id, fd), 0);
    }
    EXPECT_EQ(content("new"), "ours");
}

TEST_F(Opening, ADescriptorThatWasClosedIsOpenedAgain)
{
    after_open = [](int fd) { (void)::close(fd); };
    const int flags = O_RDWR | O_CREAT | O_EXCL;
    const int fd = kpti_descriptor_open_new(path("new").c_str(), flags, 0600, &id);
    EXPECT_GE(fd, 0);
    EXPECT_EQ(kpti_descriptor_close(&id, fd), 0);
}

class OpenJournal : public Scratch
{
  protected:
    void SetUp() override
    {
        ASSERT_EQ(kpti_et_journal_open(&journal, path("journal").c_str()), 0);
        make_file("own", "mine");
    }
    void TearDown() override
    {
        kpti_et_mappings_unmap(kpti_et_journal_close(&journal, 0));
    }
    /* The program closes FD, and the file that it opens next gets the number. */
    void replace(int fd)
    {
        const int own = ::open(path("own").c_str(), O_RDWR);
        ASSERT_EQ(dup2(own, fd), fd);
        ASSERT_EQ(::close(own), 0);
    }

    kpti_et_journal journal;
    enum { BYTES = 1 << 20 };
};

/* The live writer reserves space with the descriptor that the journal had. */
TEST_F(OpenJournal, SpaceIsNotReservedInAnotherFile)
{
    const kpti_et_extent next = kpti_et_journal_next(&journal, BYTES);
    replace(journal.fd);
    EXPECT_FALSE(kpti_et_extent_make(next));
    EXPECT_EQ(content("own"), "mine");
}

TEST_F(OpenJournal, SpaceThatWasReservedInAnotherFileIsNotUsed)
{
    const kpti_et_extent next = kpti_et_journal_next(&journal, BYTES);
    in_reservation = [this](int fd) { replace(fd); };
    EXPECT_FALSE(kpti_et_extent_make(next));
}

/* A store to space that the file does not have would raise SIGBUS. */
TEST_F(OpenJournal, AChunkIsNotTakenWhereSpaceWasReservedInAnotherFile)
{
    int error = 0;
    in_reservation = [this](int fd) { replace(fd); };
    EXPECT_EQ(kpti_et_journal_take(&journal, 0, BYTES / KPTI_ET_WORD, 1, &error), nullptr);
    EXPECT_EQ(error, EBADF);
}

/* The child of a fork closes its parent's descriptors, and no others. */
TEST_F(Descriptor, AChildClosesNothingOfTheProgram)
{
    begin();
    run_many();
    close_all();
    in_a_child([this] {
        for (int fd : theirs)
            if (fcntl(fd, F_GETFD) == -1) return false;
        return true;
    });
    expect_tree(finish());
    expect_theirs_untouched();
}

/* A journal that another observer has made under the same name is not removed. */
TEST_F(Descriptor, AJournalThatTookTheNameStays)
{
    begin();
    std::filesystem::remove(path("t.json.journal"));
    make_file("t.json.journal", "theirs");
    expect_tree(finish());
    EXPECT_EQ(content("t.json.journal"), "theirs");
}

/* The program's output must not go to a file of ours. */
TEST_F(Descriptor, NoneIsAStandardOne)
{
    std::string taken;
    int aside[3];
    for (int fd = 0; fd < 3; fd++) {
        aside[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 50);
        (void)::close(fd);
    }
    const auto look = [&taken](const char *when) {
        for (int fd = 0; fd < 3; fd++)
            if (fcntl(fd, F_GETFD) != -1) taken += std::to_string(fd) + when;
    };
    for (const char *name : {"t.json", "/dev/null"}) {
        begin(name);
        run_many();
        usleep(10000); /* the live writer has opened its file */
        look(" while it records; ");
        EXPECT_EQ(stop(), KPT_OK);
        EXPECT_EQ(close(), KPT_OK) << error;
        look(" afterwards; ");
    }
    for (int fd = 0; fd < 3; fd++) {
        (void)dup2(aside[fd], fd);
        (void)::close(aside[fd]);
    }
    EXPECT_EQ(taken, "");
}

} // namespace
