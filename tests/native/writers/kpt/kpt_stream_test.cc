/* kpt_stream_test.cc: .kpt files when the system fails: a full disk, a reader that closes the pipe, the end
 * of the process. */
#include <gtest/gtest.h>

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fixtures/batches/kpt_file.h"

namespace
{

/* The thread that packs then holds no lock. */
void wait_until_packer_sleeps()
{
    for (;;) {
        for (const auto &task : std::filesystem::directory_iterator("/proc/self/task")) {
            std::ifstream file(task.path() / "stat");
            std::string line;
            std::getline(file, line);
            if (line.find("(kpytrace) S") != std::string::npos) return;
        }
        usleep(1000);
    }
}

/* A limit on the size of files simulates a disk that is full and has space again later. */
class FullDisk : public KptFile
{
  protected:
    FullDisk()
    {
        handler = signal(SIGXFSZ, SIG_IGN);
        getrlimit(RLIMIT_FSIZE, &before);
    }
    ~FullDisk() override
    {
        limit(before.rlim_cur);
        signal(SIGXFSZ, handler);
    }
    void limit(rlim_t bytes)
    {
        struct rlimit now = before;
        now.rlim_cur = bytes;
        ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &now), 0);
    }

    void (*handler)(int) = nullptr;
    struct rlimit before = {};
};

TEST_F(FullDisk, AStreamGoesOnWithoutTheRecord)
{
    ASSERT_EQ(create(path("a.kpt"), true), 0);
    ASSERT_EQ(put(make_chunk(0, 0, 1000)), KPT_OK);
    const std::string intact = content("a.kpt");
    limit(intact.size() + 500); /* half of the next */
    EXPECT_EQ(put(make_chunk(0, 1, 1000)), KPT_OK) << "it is lost, and counted";
    EXPECT_EQ(content("a.kpt"), intact) << "nothing is left of it";
    EXPECT_EQ(put(make_chunk(KPT_CHUNK_TABLE, 2, 1000)), KPT_E_IO) << "it will come again";
    note("lost", "\"x\":\"" + std::string(1000, ' ') + "\"");
    kpti_kpt_put_notes(&writer, &notes);
    limit(before.rlim_cur);
    kpti_kpt_put_notes(&writer, &notes);
    EXPECT_EQ(put(make_chunk(KPT_CHUNK_TABLE, 2, 1000)), KPT_OK);
    EXPECT_EQ(writer.lost_bytes, 1000u);
    EXPECT_EQ(kpti_kpt_close(&writer, 1), EFBIG) << "the first error is returned";
    ASSERT_EQ(open("a.kpt"), 0);
    ASSERT_EQ(read_all(), KPT_DECLINED);
    EXPECT_EQ(reader.state, KPTI_KPT_LACKING) << "the file says so as well";
    EXPECT_EQ(chunks.size(), 2u);
    EXPECT_EQ(read_notes.count, 1u) << "notes come again as well";
}

/* The same if a thread packs first: what is lost is counted as it was before packing. */
TEST_F(FullDisk, APackedStreamGoesOnWithoutTheChunk)
{
    chunk c = make_chunk(0, 0, 8000);
    c.head.format = 0;
    ASSERT_EQ(create(path("a.kpt"), true), 0);
    ASSERT_EQ(kpti_kpt_pack(&writer), 0);
    EXPECT_EQ(put(c), KPT_OK);
    kpti_kpt_drain(&writer);
    const std::string intact = content("a.kpt");
    EXPECT_LT(intact.size(), 3000u);
    limit(intact.size() + 500);
    EXPECT_EQ(put(c), KPT_OK);
    kpti_kpt_drain(&writer);
    EXPECT_EQ(content("a.kpt"), intact);
    limit(before.rlim_cur);
    EXPECT_EQ(put(make_chunk(0, 1, 8)), KPT_OK) << "of an unknown format: written as it is";
    EXPECT_EQ(writer.lost_bytes, 8000u);
    EXPECT_EQ(kpti_kpt_close(&writer, 1), EFBIG);
    ASSERT_EQ(open("a.kpt"), 0);
    ASSERT_EQ(read_all(), KPT_DECLINED);
    EXPECT_EQ(reader.state, KPTI_KPT_LACKING);
    ASSERT_EQ(chunks.size(), 2u);
    EXPECT_EQ(chunks[0].head.format, 4u);
    EXPECT_EQ(chunks[1].head.format, 7u);
}

/* The child of a fork does not have the thread that packs, like a machine that does not run it: those that wait for
 * the queue, or for its end, pack and write in its place. */
TEST_F(KptFile, APackedStreamNeedsNoTurnOfItsThread)
{
    enum { CHUNKS = 50, SECONDS = 60 };
    ASSERT_EQ(create(path("a.kpt"), true), 0);
    ASSERT_EQ(kpti_kpt_pack(&writer), 0);
    wait_until_packer_sleeps();
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (!child) {
        alarm(SECONDS); /* ends a child that waits for ever */
        for (uint32_t i = 0; i < CHUNKS; i++) {
            chunk c = make_chunk(0, i, 8000);
            c.head.format = 0;
            if (put(c) != KPT_OK) _exit(1);
        }
        kpti_kpt_drain(&writer);
        _exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    /* The end goes behind what the child wrote: they share the offset. */
    ASSERT_EQ(kpti_kpt_close(&writer, 1), 0);
    ASSERT_EQ(open("a.kpt"), 0);
    ASSERT_EQ(read_all(), KPT_DECLINED);
    EXPECT_EQ(reader.state, KPTI_KPT_WHOLE);
    ASSERT_EQ(chunks.size(), static_cast<size_t>(CHUNKS));
    for (uint32_t i = 0; i < CHUNKS; i++) {
        EXPECT_EQ(chunks[i].head.sequence, i);
        EXPECT_EQ(chunks[i].head.format, 4u);
    }
}

/* Another program's file: its earlier content is not removed with our record. */
TEST_F(FullDisk, AFileThatWasOpenBeforeKeepsWhatItHeld)
{
    make_file("log", std::string(5000, 'x'));
    int fd = ::open(path("log").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(create("/dev/fd/" + std::to_string(fd), true), 0);
    limit(5000 + 1000);
    EXPECT_EQ(put(make_chunk(0, 0, 2000)), KPT_OK);
    limit(before.rlim_cur);
    EXPECT_EQ(put(make_chunk(0, 1, 8)), KPT_OK);
    EXPECT_EQ(put(make_chunk(KPT_CHUNK_TABLE, 0, 8)), KPT_E_IO) << "nothing follows half a record";
    EXPECT_EQ(writer.lost_bytes, 2008u);
    EXPECT_EQ(kpti_kpt_close(&writer, 1), EFBIG);
    close(fd);
    EXPECT_EQ(content("log").size(), 6000u);
    EXPECT_EQ(content("log").substr(0, 5000), std::string(5000, 'x'));
}

TEST_F(FullDisk, AWholeFileIsNotThereAtAll)
{
    ASSERT_EQ(create(path("a.kpt"), false), 0);
    limit(1000);
    for (uint32_t i = 0; i < 5; i++)
        (void)put(make_chunk(0, i, 1 << 20));
    EXPECT_EQ(kpti_kpt_close(&writer, 1), EFBIG);
    EXPECT_EQ(files(), 0u);
}

TEST_F(FullDisk, AStreamThatCanNotBeginLeavesWhatWasThere)
{
    make_file("a.kpt", "before");
    limit(0);
    EXPECT_EQ(create(path("a.kpt"), true), EFBIG);
    EXPECT_EQ(content("a.kpt"), "before");
    EXPECT_EQ(files(), 1u);
}

/* The signal is raised at the first bytes, after the file was created. */
TEST_F(FullDisk, AProcessThatEndsBeforeTheHeadLeavesNoFile)
{
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (!child) {
        signal(SIGXFSZ, SIG_DFL);
        limit(0);
        _exit(create(path("a.kpt"), true));
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ) << status;
    EXPECT_FALSE(exists("a.kpt"));
    EXPECT_EQ(files(), 1u) << "under another name";
}

/* As daemons do, which close all that they did not open; the number is another file's soon. */
TEST_F(KptFile, ADescriptorThatTheProgramClosesIsNotUsed)
{
    ASSERT_EQ(create(path("a.kpt"), true), 0);
    close(writer.fd);
    const int theirs = ::open(path("theirs").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_EQ(theirs, writer.fd);
    EXPECT_EQ(put(make_chunk(0, 0, 100)), KPT_OK);
    EXPECT_EQ(put(make_chunk(0, 1, 100)), KPT_OK);
    EXPECT_EQ(writer.lost_bytes, 0u);
    EXPECT_EQ(kpti_kpt_close(&writer, 1), 0);
    EXPECT_EQ(content("theirs"), "");
    EXPECT_EQ(close(theirs), 0) << "it is still open";
    ASSERT_EQ(open("a.kpt"), 0);
    ASSERT_EQ(read_all(), KPT_DECLINED);
    EXPECT_EQ(reader.state, KPTI_KPT_WHOLE);
    EXPECT_EQ(chunks.size(), 2u);
}

TEST_F(KptFile, ADescriptorThatCanNotBeHadAgain)
{
    ASSERT_EQ(create(path("a.kpt"), true), 0);
    close(writer.fd);
    const int theirs = ::open(path("theirs").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_EQ(theirs, writer.fd);
    make_file("other", "other");
    std::filesystem::rename(path("other"), path("a.kpt"));
    EXPECT_EQ(put(make_chunk(0, 0, 100)), KPT_OK);
    EXPECT_EQ(writer.lost_bytes, 100u);
    EXPECT_EQ(kpti_kpt_close(&writer, 1), EBADF);
    EXPECT_EQ(content("theirs"), "");
    EXPECT_EQ(content("a.kpt"), "other");
    EXPECT_EQ(close(theirs), 0);
}

/* The program's output must not go to the trace. */
TEST_F(KptFile, NoDescriptorIsAStandardOne)
{
    int aside[3];
    int number[2];
    for (int fd = 0; fd < 3; fd++) {
        aside[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 50);
        close(fd);
    }
    const int created = create(path("a.kpt"), true);
    number[0] = writer.fd;
    close(writer.fd);
    const kpt_status status = put(make_chunk(0, 0, 100));
    number[1] = writer.fd;
    const int closed = kpti_kpt_close(&writer, 1);
    for (int fd = 0; fd < 3; fd++) {
        dup2(aside[fd], fd);
        close(aside[fd]);
    }
    EXPECT_EQ(created, 0);
    EXPECT_EQ(status, KPT_OK);
    EXPECT_EQ(closed, 0);
    EXPECT_GE(number[0], 3);
    EXPECT_GE(number[1], 3) << "also where it is opened again";
}

TEST_F(KptFile, AStreamThatWasReplacedIsAnError)
{
    ASSERT_EQ(create(path("a.kpt"), true), 0);
    EXPECT_TRUE(kpti_kpt_is_in_place(&writer));
    std::filesystem::remove(path("a.kpt"));
    EXPECT_FALSE(kpti_kpt_is_in_place(&writer));
    EXPECT_EQ(put(make_chunk(0, 0, 100)), KPT_OK);
    EXPECT_EQ(kpti_kpt_close(&writer, 1), ESTALE);
}

TEST_F(KptFile, AReaderThatLeavesIsAnError)
{
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    auto handler = signal(SIGPIPE, SIG_IGN);
    ASSERT_EQ(create("/dev/fd/" + std::to_string(ends[1]), true), 0);
    close(ends[0]);
    EXPECT_EQ(put(make_chunk(0, 0, 100)), KPT_OK);
    EXPECT_EQ(put(make_chunk(KPT_CHUNK_TABLE, 0, 100)), KPT_E_IO);
    EXPECT_EQ(writer.lost_bytes, 100u);
    EXPECT_EQ(kpti_kpt_close(&writer, 1), EPIPE);
    signal(SIGPIPE, handler);
    close(ends[1]);
}

} // namespace
