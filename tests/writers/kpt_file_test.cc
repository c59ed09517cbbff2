/* kpt_file_test.cc: our own file: what is put comes back, as a whole file and as a stream; what is missing
 * or damaged is noticed, wherever it is. */
#include <gtest/gtest.h>

#include <csignal>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "kpt_reader.h"
#include "kpt_text.h"
#include "kpt_writer.h"
#include "scratch.h"

namespace
{

struct chunk {
    kpt_chunk head;
    std::string bytes;
};

chunk make_chunk(uint32_t thread, uint32_t sequence, size_t size)
{
    chunk c = {{}, std::string(size, static_cast<char>('a' + sequence))};
    KPT_INIT(&c.head);
    c.head.format = 7;
    c.head.thread = thread;
    c.head.sequence = sequence;
    c.head.run = 3;
    c.head.os_tid = 1000 + thread;
    c.head.first_ticks = UINT64_C(1) << 40;
    c.head.last_ticks = UINT64_MAX;
    c.head.dropped_before = 5;
    return c;
}

class KptFile : public Scratch
{
  protected:
    ~KptFile() override
    {
        kpti_kpt_unmap(&reader);
        kpti_notes_free(&notes);
        kpti_notes_free(&read_notes);
        close(memory);
    }

    int create(const std::string &file, bool stream)
    {
        return kpti_kpt_create(&writer, file.c_str(), stream, 42, -7, kpt_str_of("a=1\nkey=two\n"));
    }
    kpt_status put(const chunk &c)
    {
        kpt_chunk head = c.head;
        head.data = c.bytes.data();
        head.size_bytes = c.bytes.size();
        return kpti_kpt_put_chunk(&writer, &head);
    }
    void note(const std::string &name, const std::string &args, double value = 0)
    {
        kpti_note n = {};
        n.what = KPTI_NOTE_COUNTER;
        n.partner = 9;
        n.name = {name.data(), name.size()};
        n.args = {args.data(), args.size()};
        n.value = value;
        n.flow = 11;
        n.ns = -12;
        n.os_tid = 13;
        ASSERT_NE(kpti_notes_add(&notes, &n), 0u);
    }
    /* Chunks of every padding, and notes; the file's bytes. */
    std::string write_small(bool stream)
    {
        EXPECT_EQ(create(path("small.kpt"), stream), 0);
        for (uint32_t i = 0; i < 10; i++)
            EXPECT_EQ(put(make_chunk(i ? i : KPT_CHUNK_TABLE, i, i)), KPT_OK);
        note("n", "\"k\":1");
        note("", "");
        kpti_kpt_put_notes(&writer, &notes);
        EXPECT_EQ(kpti_kpt_close(&writer, 1), 0);
        return content("small.kpt");
    }

    int open(const std::string &name)
    {
        return open_path(path(name));
    }
    int open_path(const std::string &file)
    {
        int error = kpti_kpt_open(&reader, file.c_str(), &why);
        reader.notes = &read_notes;
        return error;
    }
    /* All chunks up to the end; the status that ended them. */
    kpt_status read_all()
    {
        for (;;) {
            kpt_chunk c;
            KPT_INIT(&c);
            kpt_status status = kpti_kpt_next_chunk(&reader, &c);
            if (status != KPT_OK) return status;
            EXPECT_EQ(reinterpret_cast<uintptr_t>(c.data) % 8, 0u);
            chunks.push_back({c, {static_cast<const char *>(c.data), c.size_bytes}});
        }
    }
    /* What a file of these bytes is: its state, or -1 where it can't be opened. */
    int state_of(const std::string &bytes)
    {
        chunks.clear();
        kpti_notes_free(&read_notes);
        read_notes = {};
        EXPECT_EQ(ftruncate(memory, 0), 0);
        EXPECT_EQ(pwrite(memory, bytes.data(), bytes.size(), 0), (ssize_t)bytes.size());
        int error = open_path("/proc/self/fd/" + std::to_string(memory));
        if (error) {
            EXPECT_EQ(error, EBADMSG);
            EXPECT_NE(why, nullptr);
            return -1;
        }
        EXPECT_EQ(read_all(), KPT_DECLINED);
        EXPECT_LE(reader.at, reader.size);
        int state = reader.state;
        kpti_kpt_unmap(&reader);
        return state;
    }

    kpti_kpt_writer writer = {};
    kpti_kpt_reader reader = {};
    kpti_notes notes = {};
    kpti_notes read_notes = {};
    std::vector<chunk> chunks;
    const char *why = nullptr;
    int memory = memfd_create("kpt_file_test", MFD_CLOEXEC); /* thousands of files, quickly */
};

TEST_F(KptFile, WhatIsPutComesBack)
{
    for (bool stream : {false, true}) {
        write_small(stream);
        ASSERT_EQ(open("small.kpt"), 0);
        chunks.clear();
        ASSERT_EQ(read_all(), KPT_DECLINED);
        EXPECT_EQ(reader.state, KPTI_KPT_WHOLE);
        EXPECT_EQ(reader.pid, 42u);
        EXPECT_EQ(reader.base_ns, -7);
        ASSERT_EQ(chunks.size(), 10u);
        for (uint32_t i = 0; i < 10; i++) {
            const chunk expected = make_chunk(i ? i : KPT_CHUNK_TABLE, i, i);
            const kpt_chunk &got = chunks[i].head;
            EXPECT_EQ(chunks[i].bytes, expected.bytes);
            EXPECT_EQ(got.format, 7u);
            EXPECT_EQ(got.thread, expected.head.thread);
            EXPECT_EQ(got.sequence, i);
            EXPECT_EQ(got.run, 3u);
            EXPECT_EQ(got.os_tid, expected.head.os_tid);
            EXPECT_EQ(got.first_ticks, expected.head.first_ticks);
            EXPECT_EQ(got.last_ticks, expected.head.last_ticks);
            EXPECT_EQ(got.dropped_before, 5u);
        }
        kpti_kpt_unmap(&reader);
        kpti_notes_free(&notes);
        kpti_notes_free(&read_notes);
        notes = read_notes = {};
        writer = {};
    }
}

TEST_F(KptFile, InfoIsFoundByItsKey)
{
    write_small(false);
    ASSERT_EQ(open("small.kpt"), 0);
    EXPECT_EQ(kpti_kpt_info(reader.info, "key").size, 0u) << "nothing was read so far";
    (void)read_all();
    auto value = [&](const char *key) {
        kpt_str found = kpti_kpt_info(reader.info, key);
        return std::string(found.data, found.size);
    };
    EXPECT_EQ(value("a"), "1");
    EXPECT_EQ(value("key"), "two");
    EXPECT_EQ(value("ke"), "");
}

TEST_F(KptFile, NotesComeBackWithTheirNumbers)
{
    const std::string large(5000, 'L');
    ASSERT_EQ(create(path("a.kpt"), true), 0);
    note("one", "", 1.5);
    kpti_kpt_put_notes(&writer, &notes);
    kpti_kpt_put_notes(&writer, &notes); /* nothing is new */
    note(large, large);
    note("", "\"x\":\"y\"");
    kpti_kpt_put_notes(&writer, &notes);
    ASSERT_EQ(kpti_kpt_close(&writer, 1), 0);
    ASSERT_EQ(open("a.kpt"), 0);
    ASSERT_EQ(read_all(), KPT_DECLINED);
    ASSERT_EQ(read_notes.count, 3u);
    for (uint32_t i = 1; i <= 3; i++) {
        const kpti_note *a = kpti_notes_get(&notes, i);
        const kpti_note *b = kpti_notes_get(&read_notes, i);
        EXPECT_EQ(std::string(a->name.data, a->name.size), std::string(b->name.data, b->name.size));
        EXPECT_EQ(std::string(a->args.data, a->args.size), std::string(b->args.data, b->args.size));
        EXPECT_EQ(a->value, b->value);
        EXPECT_EQ(b->what, static_cast<uint32_t>(KPTI_NOTE_COUNTER));
        EXPECT_EQ(b->partner, 9u);
        EXPECT_EQ(b->flow, 11u);
        EXPECT_EQ(b->ns, -12);
        EXPECT_EQ(b->os_tid, 13u);
    }
}

/* A flight recorder has dropped some before they were put: those that are left keep their numbers. */
TEST_F(KptFile, NotesMayBeMissingInTheMiddle)
{
    ASSERT_EQ(create(path("a.kpt"), true), 0);
    note("1", "");
    kpti_kpt_put_notes(&writer, &notes);
    for (int i = 2; i <= 9; i++)
        note(std::to_string(i), "");
    kpti_notes_keep_last(&notes, 2);
    kpti_kpt_put_notes(&writer, &notes);
    ASSERT_EQ(kpti_kpt_close(&writer, 1), 0);
    ASSERT_EQ(open("a.kpt"), 0);
    ASSERT_EQ(read_all(), KPT_DECLINED);
    EXPECT_EQ(reader.state, KPTI_KPT_WHOLE);
    ASSERT_NE(kpti_notes_get(&read_notes, 9), nullptr);
    EXPECT_EQ(*kpti_notes_get(&read_notes, 9)->name.data, '9');
    EXPECT_EQ(kpti_notes_get(&read_notes, 7), nullptr);
}

TEST_F(KptFile, AWholeFileAppearsAtTheEndAStreamAtOnce)
{
    ASSERT_EQ(create(path("whole.kpt"), false), 0);
    EXPECT_FALSE(exists("whole.kpt"));
    EXPECT_EQ(kpti_kpt_close(&writer, 0), 0);
    EXPECT_EQ(files(), 0u);
    writer = {};
    ASSERT_EQ(create(path("stream.kpt"), true), 0);
    ASSERT_EQ(put(make_chunk(0, 0, 100)), KPT_OK);
    EXPECT_EQ(state_of(content("stream.kpt")), KPTI_KPT_CUT_OFF);
    EXPECT_EQ(chunks.size(), 1u) << "what was put is there before the end";
    EXPECT_EQ(kpti_kpt_close(&writer, 0), 0);
    EXPECT_EQ(state_of(content("stream.kpt")), KPTI_KPT_CUT_OFF) << "it was not ended";
}

TEST_F(KptFile, CutOffAtAnyByte)
{
    const std::string whole = write_small(false);
    size_t before = 0;
    for (size_t size = 0; size < whole.size(); size++) {
        ASSERT_EQ(state_of(whole.substr(0, size)), size < 64 ? -1 : KPTI_KPT_CUT_OFF) << size;
        ASSERT_GE(chunks.size(), before) << "more bytes never hold less";
        before = chunks.size();
        for (uint32_t i = 0; i < chunks.size(); i++)
            ASSERT_EQ(chunks[i].bytes, make_chunk(i, i, i).bytes);
    }
    EXPECT_EQ(state_of(whole + "more"), KPTI_KPT_WHOLE);
}

/* What is given out is never wrong, whichever bit is. */
TEST_F(KptFile, AnyBitIsWrong)
{
    const std::string whole = write_small(false);
    size_t unnoticed = 0;
    for (size_t bit = 0; bit < 8 * whole.size(); bit++) {
        std::string other = whole;
        other[bit / 8] = static_cast<char>(other[bit / 8] ^ 1 << bit % 8);
        const int state = state_of(other);
        ASSERT_TRUE(bit >= 8 * 64 || state == -1) << bit;
        unnoticed += state == KPTI_KPT_WHOLE;
        for (uint32_t i = 0; i < chunks.size(); i++)
            ASSERT_EQ(chunks[i].bytes, make_chunk(i, i, i).bytes) << bit;
    }
    size_t padding = 0;
    for (uint32_t i = 0; i < 10; i++)
        padding += kpti_kpt_padding(i);
    padding += kpti_kpt_padding(strlen("a=1\nkey=two\n")) + kpti_kpt_padding(6);
    EXPECT_EQ(unnoticed, 8 * padding) << "only bytes that mean nothing";
}

TEST_F(KptFile, PathsThatCanNotBeReadSayWhy)
{
    EXPECT_EQ(open("none.kpt"), ENOENT);
    EXPECT_EQ(why, nullptr);
    EXPECT_EQ(open("."), EISDIR);
    ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
    EXPECT_EQ(open("pipe"), ESPIPE) << "nobody waits for who writes it";
}

TEST_F(KptFile, PathsThatCanNotBeWrittenSayWhy)
{
    for (bool stream : {false, true}) {
        EXPECT_EQ(create(path("none/a.kpt"), stream), ENOENT);
        EXPECT_EQ(create(folder(), stream), EISDIR);
        EXPECT_EQ(files(), 0u);
    }
    EXPECT_EQ(create("/dev/full", true), ENOSPC);
    ASSERT_EQ(create("/dev/full", false), 0);
    EXPECT_EQ(kpti_kpt_close(&writer, 1), ENOSPC);
}

/* The size that a file may have stands for a disk that is full, and has room again later. */
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
    note("lost", std::string(1000, ' '));
    kpti_kpt_put_notes(&writer, &notes);
    limit(before.rlim_cur);
    kpti_kpt_put_notes(&writer, &notes);
    EXPECT_EQ(put(make_chunk(KPT_CHUNK_TABLE, 2, 1000)), KPT_OK);
    EXPECT_EQ(writer.lost_bytes, 1000u);
    EXPECT_EQ(kpti_kpt_close(&writer, 1), EFBIG) << "the first error is told";
    ASSERT_EQ(open("a.kpt"), 0);
    ASSERT_EQ(read_all(), KPT_DECLINED);
    EXPECT_EQ(reader.state, KPTI_KPT_WHOLE);
    EXPECT_EQ(chunks.size(), 2u);
    EXPECT_EQ(read_notes.count, 1u) << "notes come again as well";
}

/* Somebody else's file: what it held before is not taken back with our record. */
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
