/* out_file_test.cc: an output exists completely or not at all, links and devices are preserved, and the
 * first error is reported. */
#include "writers/io/output_file.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "tests/fixtures/scratch.h"

namespace
{

class OutFile : public Scratch
{
  protected:
    /* Writes TEXT to PATH; the errno of open or close. */
    int write(const std::string &path, const std::string &text, bool keep = true)
    {
        int error = kpti_out_open(&out, path.c_str());
        if (error) return error;
        kpti_out_put(&out, text.data(), text.size());
        return kpti_out_close(&out, keep);
    }

    kpti_out_file out = {};
};

TEST_F(OutFile, AFileAppearsAtCloseAndNothingElseIsLeft)
{
    ASSERT_EQ(kpti_out_open(&out, path("a.json").c_str()), 0);
    kpti_out_put(&out, "hello", 5);
    EXPECT_FALSE(exists("a.json"));
    EXPECT_EQ(files(), 1u) << "the temporary one";
    EXPECT_EQ(kpti_out_close(&out, 1), 0);
    EXPECT_EQ(content("a.json"), "hello");
    EXPECT_EQ(files(), 1u);
}

TEST_F(OutFile, WhatIsNotKeptLeavesNothingAndTheOldFileStays)
{
    EXPECT_EQ(write(path("a"), "x", false), 0);
    EXPECT_EQ(files(), 0u);
    make_file("a", "old");
    EXPECT_EQ(write(path("a"), "new", false), 0);
    EXPECT_EQ(content("a"), "old");
    EXPECT_EQ(write(path("a"), "new"), 0);
    EXPECT_EQ(content("a"), "new");
    EXPECT_EQ(files(), 1u);
}

TEST_F(OutFile, RightsAreThoseOfTheOldFileOrOfAnyNewOne)
{
    struct stat info;
    mode_t before = umask(027);
    EXPECT_EQ(write(path("new"), ""), 0);
    umask(before);
    ASSERT_EQ(stat(path("new").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0640u);
    make_file("old", "");
    ASSERT_EQ(chmod(path("old").c_str(), 0604), 0);
    EXPECT_EQ(write(path("old"), "x"), 0);
    ASSERT_EQ(stat(path("old").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0604u);
}

TEST_F(OutFile, SmallAndLargePiecesKeepTheirOrder)
{
    std::string large(3 * KPTI_OUT_BUFFER_BYTES + 17, 'L');
    std::string all;
    ASSERT_EQ(kpti_out_open(&out, path("a").c_str()), 0);
    for (const std::string &piece : {std::string("one"), large, std::string(), std::string("two"),
                                     std::string(KPTI_OUT_BUFFER_BYTES, 'b'), std::string("end")}) {
        kpti_out_put(&out, piece.data(), piece.size());
        all += piece;
    }
    for (int i = 0; i < 100000; i++) {
        char *at = kpti_out_reserve(&out, 100);
        snprintf(at, 100, "%d,", i);
        kpti_out_wrote(&out, at + strlen(at));
        all += std::to_string(i) + ",";
    }
    EXPECT_EQ(kpti_out_close(&out, 1), 0);
    EXPECT_EQ(out.written, all.size());
    EXPECT_TRUE(content("a") == all);
}

TEST_F(OutFile, WithoutANameNothingIsSeenBeforeClose)
{
    struct stat info;
    out.wants_no_name = 1;
    make_file("a", "old");
    ASSERT_EQ(chmod(path("a").c_str(), 0604), 0);
    ASSERT_EQ(kpti_out_open(&out, path("a").c_str()), 0);
    kpti_out_put(&out, "new", 3);
    EXPECT_EQ(files(), out.is_unnamed ? 1u : 2u);
    EXPECT_EQ(content("a"), "old");
    EXPECT_EQ(kpti_out_close(&out, 1), 0);
    EXPECT_EQ(content("a"), "new");
    ASSERT_EQ(stat(path("a").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0604u);
    EXPECT_EQ(write(path("a"), "newer", false), 0);
    EXPECT_EQ(content("a"), "new");
    EXPECT_EQ(write(path("none/a"), "x"), ENOENT);
    EXPECT_EQ(files(), 1u);
}

/* As daemons do, which close all that they did not open; the number is another file's soon. */
TEST_F(OutFile, ADescriptorThatTheProgramClosesIsNotUsed)
{
    for (int wants_no_name : {0, 1}) {
        const std::string large(3 * KPTI_OUT_PIECE_BYTES, 'L');
        out = {};
        out.wants_no_name = wants_no_name;
        ASSERT_EQ(kpti_out_open(&out, path("a").c_str()), 0);
        ASSERT_EQ(kpti_out_pass(&out, large.data(), large.size()), large.size());
        close(out.fd);
        const int theirs = ::open(path("theirs").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        ASSERT_EQ(theirs, out.fd);
        kpti_out_put(&out, large.data(), large.size());
        const bool is_lost = out.is_unnamed;
        EXPECT_EQ(kpti_out_close(&out, 1), is_lost ? EBADF : 0);
        EXPECT_TRUE(content("theirs").empty());
        EXPECT_EQ(close(theirs), 0) << "it is still open";
        EXPECT_TRUE(is_lost || content("a") == large + large);
        std::filesystem::remove(path("theirs"));
        EXPECT_EQ(files(), 1u);
    }
}

TEST_F(OutFile, NoDescriptorIsAStandardOne)
{
    const std::string name = path("a");
    std::string low;
    int aside[3];
    for (int fd = 0; fd < 3; fd++) {
        aside[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 50);
        close(fd);
    }
    for (const std::string &to :
         {name, std::string("/dev/null"), "/dev/fd/" + std::to_string(aside[1])})
        for (int wants_no_name : {0, 1}) {
            out = {};
            out.wants_no_name = wants_no_name;
            const int error = kpti_out_open(&out, to.c_str());
            if (error || out.fd < 3) low += to + " ";
            if (!error) kpti_out_close(&out, 0);
        }
    for (int fd = 0; fd < 3; fd++) {
        dup2(aside[fd], fd);
        close(aside[fd]);
    }
    EXPECT_EQ(low, "");
}

/* Text that is passed, and text that is put after it. */
TEST_F(OutFile, WhatIsGatheredElsewhereIsPassedOn)
{
    std::string text;
    std::string rest;
    ASSERT_EQ(kpti_out_open(&out, path("a").c_str()), 0);
    for (int i = 0; i < 300000; i++) {
        const std::string line = std::to_string(i) + "\n";
        text += line;
        rest += line;
        if (rest.size() > 100000) rest.erase(0, kpti_out_pass(&out, rest.data(), rest.size()));
        EXPECT_LT(rest.size(), 110000u);
    }
    kpti_out_put(&out, rest.data(), rest.size());
    EXPECT_EQ(kpti_out_pass(&out, "end", 3), 3u) << "behind what was put";
    EXPECT_EQ(kpti_out_close(&out, 1), 0);
    EXPECT_EQ(content("a"), text + "end");
}

TEST_F(OutFile, PathsThatCanNotBeWrittenSayWhy)
{
    make_file("file", "");
    EXPECT_EQ(write(path("none/a"), "x"), ENOENT);
    EXPECT_EQ(write(path("file/a"), "x"), ENOTDIR);
    EXPECT_EQ(write(folder(), "x"), EISDIR);
    EXPECT_EQ(write(folder() + "/", "x"), EISDIR);
    EXPECT_EQ(write(path(".."), "x"), EISDIR);
    EXPECT_EQ(write("", "x"), ENOENT);
    EXPECT_EQ(write(path(std::string(300, 'n')), "x"), ENAMETOOLONG);
    EXPECT_EQ(write(std::string(5000, '/') + "a", "x"), ENAMETOOLONG);
    ASSERT_EQ(symlink("loop", path("loop").c_str()), 0);
    EXPECT_EQ(write(path("loop"), "x"), ELOOP);
    EXPECT_EQ(files(), 2u);
}

TEST_F(OutFile, AFolderWithoutRightsIsRefused)
{
    if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
    ASSERT_EQ(chmod(folder().c_str(), 0500), 0);
    EXPECT_EQ(write(path("a"), "x"), EACCES);
    ASSERT_EQ(chmod(folder().c_str(), 0700), 0);
}

TEST_F(OutFile, ALinkStaysAndItsTargetIsReplaced)
{
    make_file("target", "old");
    ASSERT_EQ(symlink("target", path("relative").c_str()), 0);
    ASSERT_EQ(symlink(path("relative").c_str(), path("absolute").c_str()), 0);
    ASSERT_EQ(symlink("born", path("dangling").c_str()), 0);
    EXPECT_EQ(write(path("absolute"), "new"), 0);
    EXPECT_EQ(content("target"), "new");
    EXPECT_EQ(write(path("dangling"), "first"), 0);
    EXPECT_EQ(content("born"), "first");
    struct stat info;
    for (const char *name : {"relative", "absolute", "dangling"}) {
        ASSERT_EQ(lstat(path(name).c_str(), &info), 0);
        EXPECT_TRUE(S_ISLNK(info.st_mode)) << name;
    }
}

TEST_F(OutFile, RelativePathsAreBelowTheWorkingFolder)
{
    char before[PATH_MAX];
    ASSERT_TRUE(getcwd(before, sizeof before));
    ASSERT_EQ(chdir(folder().c_str()), 0);
    EXPECT_EQ(write("plain", "1"), 0);
    EXPECT_EQ(write("./dotted", "2"), 0);
    ASSERT_EQ(chdir(before), 0);
    EXPECT_EQ(content("plain") + content("dotted"), "12");
}

TEST_F(OutFile, DevicesAreWrittenInto)
{
    struct stat info;
    EXPECT_EQ(write("/dev/null", std::string(1000000, 'x')), 0);
    EXPECT_EQ(out.written, 1000000u);
    ASSERT_EQ(lstat("/dev/null", &info), 0);
    EXPECT_TRUE(S_ISCHR(info.st_mode));
    /* A full disk, at the last flush and in the middle. */
    EXPECT_EQ(write("/dev/full", "x"), ENOSPC);
    EXPECT_EQ(write("/dev/full", std::string(5 * KPTI_OUT_BUFFER_BYTES, 'x')), ENOSPC);
}

TEST_F(OutFile, ADescriptorIsWrittenWhereItStands)
{
    make_file("log", "");
    int fd = open(path("log").c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(::write(fd, "before ", 7), 7);
    for (const char *folder : {"/dev/fd/", "/proc/self/fd/"})
        EXPECT_EQ(write(folder + std::to_string(fd), "ours "), 0);
    ASSERT_EQ(::write(fd, "after", 5), 5);
    close(fd);
    EXPECT_EQ(content("log"), "before ours ours after");
    EXPECT_EQ(write("/dev/fd/" + std::to_string(fd), "x"), EBADF);
    EXPECT_EQ(files(), 1u);
}

TEST_F(OutFile, ANamedPipeGetsTheBytes)
{
    ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
    std::string received;
    std::thread reader([&] { received = content("pipe"); });
    std::string sent(1000000, 'p');
    EXPECT_EQ(write(path("pipe"), sent), 0);
    reader.join();
    EXPECT_TRUE(received == sent);
}

TEST_F(OutFile, ANonBlockingPipeIsWaitedFor)
{
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    size_t received = 0;
    std::thread reader([&] {
        char bytes[4096];
        usleep(20000);
        for (;;) {
            ssize_t count = read(ends[0], bytes, sizeof bytes);
            if (count == 0) break;
            if (count > 0) received += static_cast<size_t>(count);
            if (count < 0) usleep(1000);
        }
    });
    EXPECT_EQ(write("/dev/fd/" + std::to_string(ends[1]), std::string(1000000, 'p')), 0);
    close(ends[1]);
    reader.join();
    close(ends[0]);
    EXPECT_EQ(received, 1000000u);
}

TEST_F(OutFile, AReaderThatLeavesIsAnError)
{
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    close(ends[0]);
    auto before = signal(SIGPIPE, SIG_IGN);
    EXPECT_EQ(write("/dev/fd/" + std::to_string(ends[1]), "x"), EPIPE);
    signal(SIGPIPE, before);
    close(ends[1]);
}

void on_signal(int) {}

/* Interrupts the waiting thread until it gives up, as Ctrl-C does. */
TEST_F(OutFile, AWaitCanBeInterrupted)
{
    int ends[2];
    struct sigaction action = {}, before;
    action.sa_handler = on_signal; /* no SA_RESTART: as Python's */
    ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
    ASSERT_EQ(pipe(ends), 0);
    std::atomic<int> asked{0};
    std::atomic<bool> done{false};
    out.interrupted = [](void *ctx) {
        return static_cast<int>(++*static_cast<std::atomic<int> *>(ctx) >= 3);
    };
    out.interrupted_ctx = &asked;
    pthread_t waiting = pthread_self();
    std::thread other([&] {
        while (!done) {
            pthread_kill(waiting, SIGUSR1);
            usleep(2000);
        }
    });
    EXPECT_EQ(write("/dev/fd/" + std::to_string(ends[1]), std::string(10000000, 'x')), EINTR);
    ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
    EXPECT_EQ(write(path("pipe"), "nobody reads"), EINTR);
    done = true;
    other.join();
    EXPECT_GE(asked, 3);
    sigaction(SIGUSR1, &before, nullptr);
    close(ends[0]);
    close(ends[1]);
}

TEST_F(OutFile, NoMemoryIsAnErrorThatLeavesNothing)
{
    out.heap.alloc = [](void *, uint64_t) -> void * { return nullptr; };
    out.heap.dealloc = [](void *, void *, uint64_t) {};
    EXPECT_EQ(write(path("a"), "x"), ENOMEM);
    EXPECT_EQ(files(), 0u);
}

} // namespace
