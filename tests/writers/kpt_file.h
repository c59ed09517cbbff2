/* kpt_file.h: writes .kpt files and reads them again, for tests. */
#ifndef KPT_FILE_H
#define KPT_FILE_H

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "abi/kpt_text.h"
#include "tests/writers/scratch.h"
#include "writers/kpt/kpt_reader.h"
#include "writers/kpt/kpt_writer.h"

struct chunk {
    kpt_chunk head;
    std::string bytes;
};

inline chunk make_chunk(uint32_t thread, uint32_t sequence, size_t size)
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
    /* Returns the state of a file with these bytes, or -1 if it can't be opened. */
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

#endif
