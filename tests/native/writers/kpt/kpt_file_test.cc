/* kpt_file_test.cc: .kpt files: written data is read back, from a complete file and from a stream; missing
 * or damaged data is detected at any position. */
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <map>
#include <sys/wait.h>
#include <thread>

#include "core/base/packed_words.h"
#include "tests/fixtures/batches/kpt_file.h"

namespace
{

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
    note(large, "\"x\":\"" + large + "\"");
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

/* A flight recorder has dropped some notes before they were written; the others keep their numbers. */
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

/* The reader never returns wrong data, whichever bit is wrong. */
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

/* Chunks of several threads, small, usual and larger than a buffer of the thread that packs. */
TEST_F(KptFile, PackedChunksKeepTheirOrderAndTheirWords)
{
    const std::vector<size_t> sizes = {8, 64000, 800, 400000, 80, 65536, 0, 8000};
    for (const bool stream : {false, true}) {
        writer = {};
        ASSERT_EQ(create(path("a.kpt"), stream), 0);
        ASSERT_EQ(kpti_kpt_pack(&writer), 0);
        std::vector<std::thread> threads;
        for (uint32_t t = 0; t < (stream ? 3 : 1); t++)
            threads.emplace_back([this, t, &sizes] {
                for (uint32_t i = 0; i < 40; i++) {
                    chunk c = make_chunk(t, i, sizes[i % sizes.size()]);
                    c.head.format = i % 3;
                    EXPECT_EQ(put(c), KPT_OK);
                }
            });
        for (auto &thread : threads)
            thread.join();
        ASSERT_EQ(put(make_chunk(KPT_CHUNK_TABLE, 0, 80)), KPT_OK);
        ASSERT_EQ(kpti_kpt_close(&writer, 1), 0);
        chunks.clear();
        ASSERT_EQ(open("a.kpt"), 0);
        ASSERT_EQ(read_all(), KPT_DECLINED);
        EXPECT_EQ(reader.state, KPTI_KPT_WHOLE);
        EXPECT_EQ(reader.formats & KPTI_PACKED_FORMAT, 0u);
        std::map<uint32_t, uint32_t> next;
        for (const chunk &c : chunks) {
            if (c.head.thread == KPT_CHUNK_TABLE) continue;
            const uint32_t i = next[c.head.thread]++;
            const size_t size = sizes[i % sizes.size()];
            const std::string expected(size, static_cast<char>('a' + i));
            EXPECT_EQ(c.head.sequence, i);
            EXPECT_EQ(c.head.format % KPTI_PACKED_FORMAT, i % 3);
            if (c.head.format < KPTI_PACKED_FORMAT) {
                EXPECT_EQ(c.bytes, expected);
                continue;
            }
            std::vector<uint64_t> words(kpti_packed_count(c.bytes.data(), c.bytes.size()));
            EXPECT_LT(c.bytes.size(), size);
            ASSERT_EQ(words.size(), size / 8);
            EXPECT_EQ(kpti_unpack_words(c.bytes.data(), c.bytes.size(), words.data(),
                                        static_cast<uint32_t>(words.size())),
                      words.size());
            EXPECT_EQ(memcmp(words.data(), expected.data(), size), 0);
        }
        EXPECT_EQ(next[0], 40u);
        kpti_kpt_unmap(&reader);
    }
}

/* The child does not have the thread that packs. */
TEST_F(KptFile, AChildLeavesAPackedStreamToItsParent)
{
    chunk c = make_chunk(0, 0, 8000);
    c.head.format = 0;
    ASSERT_EQ(create(path("a.kpt"), true), 0);
    ASSERT_EQ(kpti_kpt_pack(&writer), 0);
    EXPECT_EQ(put(c), KPT_OK);
    const pid_t pid = fork();
    if (!pid) {
        kpti_kpt_leave(&writer);
        _exit(writer.packing ? 1 : 0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(put(c), KPT_OK);
    ASSERT_EQ(kpti_kpt_close(&writer, 1), 0);
    ASSERT_EQ(open("a.kpt"), 0);
    ASSERT_EQ(read_all(), KPT_DECLINED);
    EXPECT_EQ(chunks.size(), 2u);
}

} // namespace
