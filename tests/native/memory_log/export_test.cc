/* export_test.cc: from the log to the files: a snapshot whose blocks tile its segments, with the stacks that
 * there were; Chrome JSON; and no file where something fails. */
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <string>

#include "tests/fixtures/readers/unpickle.h"
#include "tests/native/callstacks/tables.h"
#include "tests/native/memory_log/logs.h"

namespace
{

class Export : public testing::Test
{
  protected:
    void SetUp() override
    {
        char name[] = "/tmp/kpt-memory-XXXXXX";
        ASSERT_TRUE(mkdtemp(name));
        folder = name;
        log = log_make(0, 0);
        ASSERT_TRUE(log_begin(log));
    }
    void TearDown() override
    {
        log_end(log);
        log_free(log);
        for (const char *file : {"/a.pickle", "/a.json", "/a.pftrace", "/a.tables.json", "/a.txt"})
            (void)unlink((folder + file).c_str());
        EXPECT_EQ(rmdir(folder.c_str()), 0) << "something was left there";
    }
    void note(uint64_t address, uint64_t size, int kind, uint32_t stack = 0)
    {
        log_note(log_ticks(), address, size, static_cast<uint32_t>(kind), stack);
    }
    /* With malloc failing from its AFTERth call on; 0: never. What C++ needs, it has before. */
    kpt_status write(const std::string &name, int after = 0)
    {
        const std::string path = folder + name;
        char text[240] = "";
        kpt_status status;
        malloc_fails(after);
        status = log_export(log, path.c_str(), text, sizeof text);
        malloc_fails(0);
        error = text;
        return status;
    }
    std::string read(const std::string &name)
    {
        std::ifstream file(folder + name, std::ios::binary);
        std::stringstream content;
        content << file.rdbuf();
        return content.str();
    }
    bool exists(const std::string &name)
    {
        return access((folder + name).c_str(), F_OK) == 0;
    }
    std::shared_ptr<pickled> snapshot()
    {
        std::string why;
        EXPECT_EQ(write("/a.pickle"), KPT_OK) << error;
        std::shared_ptr<pickled> read_back = unpickle(read("/a.pickle"), &why);
        EXPECT_TRUE(read_back) << why;
        return read_back;
    }
    std::string folder;
    std::string error;
    kpti_memory_log *log = nullptr;
};

/* What the viewer needs of segments. */
uint64_t check_segments(const pickled &snapshot)
{
    uint64_t live = 0;
    for (const auto &segment : snapshot["segments"].items) {
        uint64_t at = (*segment)["address"].number;
        uint64_t active = 0;
        EXPECT_LT((*segment)["device"].number, snapshot["device_traces"].items.size());
        for (const auto &block : (*segment)["blocks"].items) {
            const uint64_t size = (*block)["size"].number;
            EXPECT_EQ((*block)["address"].number, at);
            EXPECT_GT(size, 0u);
            at += size;
            if ((*block)["state"].text == "active_allocated") active += size;
            EXPECT_EQ((*block)["frames"].kind, pickled::LIST);
        }
        EXPECT_EQ(at, (*segment)["address"].number + (*segment)["total_size"].number);
        EXPECT_EQ(active, (*segment)["allocated_size"].number);
        EXPECT_EQ(active, (*segment)["active_size"].number);
        live += active;
    }
    return live;
}

TEST_F(Export, OfNothing)
{
    const auto s = snapshot();
    ASSERT_TRUE(s);
    EXPECT_EQ((*s)["segments"].items.size(), 0u);
    EXPECT_EQ((*s)["device_traces"].items.size(), 4u);
    EXPECT_EQ(write("/a.json"), KPT_OK);
}

TEST_F(Export, BlocksTileSegments)
{
    std::mt19937_64 random(3);
    std::set<uint64_t> live;
    uint64_t bytes = 0;
    for (int i = 0; i < 20000; i++) {
        const uint64_t address = UINT64_C(0xFFFF00000000) + random() % 5000 * 512;
        if (live.erase(address)) {
            note(address, 0, KPTI_MEMORY_FREE);
            bytes -= 1 + address / 512 % 512;
        } else {
            live.insert(address);
            note(address, 1 + address / 512 % 512, KPTI_MEMORY_ALLOC);
            bytes += 1 + address / 512 % 512;
        }
    }
    const auto s = snapshot();
    ASSERT_TRUE(s);
    EXPECT_EQ(check_segments(*s), bytes);
    EXPECT_EQ((*s)["device_traces"][2].items.size(), 20000u);
    EXPECT_GT((*s)["kpytrace"]["peak_bytes"].number, bytes / 2);
}

TEST_F(Export, BlocksTileWhereFreesWereLost)
{
    std::mt19937_64 random(4);
    for (int i = 0; i < 3000; i++)
        note(random() % 1000000, random() % 3000, KPTI_MEMORY_ALLOC);
    const auto s = snapshot();
    ASSERT_TRUE(s);
    EXPECT_GT(check_segments(*s), 0u);
}

TEST_F(Export, NumbersOfAnySizeAndLongTexts)
{
    const std::string name(300, 'n');
    const uint32_t place = place_told(KPT_SYMBOL_PYTHON, name.c_str(), "f.py", 70000);
    const uint32_t stack = stack_make(&place, 1);
    for (int bits = 0; bits < 47; bits++) /* far from each other */
        note(UINT64_C(1) << bits, bits < 16 ? 0 : UINT64_C(1) << (bits - 1), KPTI_MEMORY_ALLOC,
             stack);
    const auto s = snapshot();
    ASSERT_TRUE(s);
    const pickled &trace = (*s)["device_traces"][2];
    ASSERT_EQ(trace.items.size(), 47u);
    for (size_t bits = 0; bits < 47; bits++) {
        EXPECT_EQ(trace[bits]["addr"].number, UINT64_C(1) << bits);
        EXPECT_EQ(trace[bits]["size"].number, bits < 16 ? 0 : UINT64_C(1) << (bits - 1));
        EXPECT_EQ(trace[bits]["frames"][0]["name"].text, name);
        EXPECT_EQ(trace[bits]["frames"][0]["line"].number, 70000u);
    }
    stack_release(stack);
}

TEST_F(Export, StacksAreThereWithFilesAndLines)
{
    const uint32_t places[] = {place_told(KPT_SYMBOL_PYTHON, "inner", "a.py", 3),
                               place_told(KPT_SYMBOL_PYTHON, "outer", "b.py", 9)};
    const uint32_t deep = stack_make(places, 2);
    const uint32_t flat = stack_make(places + 1, 1);
    for (uint64_t i = 0; i < 3000; i++)
        note(4096 + i * 64, 64, KPTI_MEMORY_ALLOC, i % 2 ? deep : i % 3 ? flat : 0);
    const auto s = snapshot();
    ASSERT_TRUE(s);
    for (size_t i = 0; i < 3000; i++) {
        const pickled &e = (*s)["device_traces"][2][i];
        const pickled &frames = e["frames"];
        EXPECT_EQ(e["action"].text, "alloc");
        ASSERT_EQ(frames.items.size(), i % 2 ? 2u : i % 3 ? 1u : 0u);
        if (i % 2) {
            EXPECT_EQ(frames[0]["name"].text, "inner");
            EXPECT_EQ(frames[0]["filename"].text, "a.py");
            EXPECT_EQ(frames[0]["line"].number, 3u);
            EXPECT_EQ(frames[1]["name"].text, "outer");
        }
    }
    stack_release(deep);
    stack_release(flat);
}

TEST_F(Export, ASuffixThatIsNone)
{
    note(16, 16, KPTI_MEMORY_ALLOC);
    for (const char *name : {"/a.txt", "/.pickl", "/pickle", "/a.pickle.gz"}) {
        EXPECT_EQ(write(name), KPT_E_UNSUPPORTED) << name;
        EXPECT_NE(error.find(".pickle"), std::string::npos);
        EXPECT_FALSE(exists(name));
    }
    EXPECT_EQ(write("/there/is/none.pickle"), KPT_E_IO);
    EXPECT_NE(error.find("none.pickle"), std::string::npos);
}

/* Allocation 1, 2, 3 … fails, until it succeeds; what fails leaves no file. */
TEST_F(Export, WithoutMemoryThereIsNoFile)
{
    const uint32_t place = place_told(KPT_SYMBOL_PYTHON, "f", "f.py", 1);
    const uint32_t stack = stack_make(&place, 1);
    for (uint64_t i = 0; i < 100; i++)
        note(4096 + i * 64, 64, KPTI_MEMORY_ALLOC, stack);
    for (const char *name : {"/a.pickle", "/a.json", "/a.pftrace", "/a.tables.json"}) {
        kpt_status status = KPT_E_MEMORY;
        int after = 0;
        while (status != KPT_OK && ++after < 200) {
            status = write(name, after);
            if (status == KPT_OK) break;
            EXPECT_TRUE(status == KPT_E_MEMORY || status == KPT_E_IO) << status;
            EXPECT_NE(error, "");
            EXPECT_FALSE(exists(name)) << after;
        }
        EXPECT_EQ(status, KPT_OK);
        EXPECT_GT(after, 5);
        EXPECT_TRUE(exists(name));
    }
    stack_release(stack);
}

} // namespace
