/* report_test.cc: what a host reports: devices, streams, categories and owners in the files; samples; more
 * pools than fit; many threads; no memory. */
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "abi/kpt_text.h"
#include "tests/fixtures/readers/unpickle.h"
#include "tests/native/callstacks/tables.h"
#include "tests/native/memory_log/logs.h"

namespace
{

constexpr uint64_t BASE = UINT64_C(0x7F0000000000);
enum { CPU = 0, CUDA = 1 };
constexpr uint64_t TOLD = 4; // the first device behind those of Python and numpy

class Report : public testing::Test
{
  protected:
    void SetUp() override
    {
        make(0, 0);
    }
    void TearDown() override
    {
        log_end(log);
        log_free(log);
    }
    void make(uint64_t most_events, uint64_t sample_bytes)
    {
        if (log) TearDown();
        samples_clear();
        log = log_make(most_events, sample_bytes);
        ASSERT_TRUE(log_begin(log));
    }
    static kpt_memory_report of(uint32_t action, uint64_t address, uint64_t size)
    {
        kpt_memory_report r;
        KPT_INIT(&r);
        r.action = action;
        r.address = address;
        r.size = size;
        r.device_index = -1;
        return r;
    }
    void alloc(uint64_t address, uint64_t size, const std::string &owner = "", uint32_t stack = 0)
    {
        kpt_memory_report r = of(KPT_REPORT_ALLOC, address, size);
        r.owner = {owner.data(), owner.size()};
        log_report(log, &r, stack);
    }
    void free_at(uint64_t address)
    {
        const kpt_memory_report r = of(KPT_REPORT_FREE, address, 0);
        log_report(log, &r, 0);
    }
    std::string write(const std::string &suffix)
    {
        char name[] = "/tmp/kpt-report-XXXXXX";
        EXPECT_TRUE(mkdtemp(name));
        const std::string path = std::string(name) + "/a" + suffix;
        char text[240] = "";
        EXPECT_EQ(log_export(log, path.c_str(), text, sizeof text), KPT_OK) << text;
        std::stringstream content;
        content << std::ifstream(path, std::ios::binary).rdbuf();
        (void)unlink(path.c_str());
        (void)rmdir(name);
        return content.str();
    }
    std::shared_ptr<pickled> snapshot()
    {
        std::string why;
        std::shared_ptr<pickled> read_back = unpickle(write(".pickle"), &why);
        EXPECT_TRUE(read_back) << why;
        return read_back;
    }
    kpti_memory_log *log = nullptr;
};

TEST_F(Report, IsADeviceBesidePythons)
{
    const uint32_t place = place_told(KPT_SYMBOL_PYTHON, "forward", "model.py", 7);
    const uint32_t stack = stack_make(&place, 1);
    kpt_memory_report r = of(KPT_REPORT_ALLOC, BASE, 4096);
    r.category = kpt_str_of("forward");
    r.owner = kpt_str_of("Net.fc1");
    r.stream = 5;
    log_report(log, &r, stack);
    log_note(log_ticks(), 64, 32, KPTI_MEMORY_ALLOC, 0);
    alloc(BASE + 8192, 100);
    free_at(BASE);
    const auto s = snapshot();
    ASSERT_TRUE(s);
    ASSERT_EQ((*s)["device_traces"].items.size(), TOLD + 1);
    EXPECT_EQ((*s)["kpytrace"]["devices"][TOLD].text, "cpu");
    const pickled &trace = (*s)["device_traces"][TOLD];
    ASSERT_EQ(trace.items.size(), 3u);
    EXPECT_EQ(trace[0]["category"].text, "forward");
    EXPECT_EQ(trace[0]["user_metadata"].text, "Net.fc1");
    EXPECT_EQ(trace[0]["stream"].number, 5u);
    EXPECT_EQ(trace[0]["frames"][0]["name"].text, "forward");
    EXPECT_EQ(trace[1]["category"].text, "unknown");
    EXPECT_EQ(trace[2]["action"].text, "free_completed");
    EXPECT_EQ(trace[2]["size"].number, 4096u);
    EXPECT_EQ((*s)["device_traces"][2][0]["category"].text, "unknown");
    ASSERT_EQ((*s)["segments"].items.size(), 2u);
    EXPECT_EQ((*s)["segments"][1]["device"].number, TOLD);
    EXPECT_EQ((*s)["segments"][1]["allocated_size"].number, 100u);
    stack_release(stack);
}

TEST_F(Report, DevicesMayHaveTheSameAddresses)
{
    kpt_memory_report r = of(KPT_REPORT_ALLOC, BASE, 1000);
    alloc(BASE, 10);
    r.device_type = CUDA;
    for (r.device_index = 0; r.device_index < 2; r.device_index++, r.size++)
        log_report(log, &r, 0);
    r.action = KPT_REPORT_FREE;
    r.device_index = 0;
    log_report(log, &r, 0);
    const auto s = snapshot();
    ASSERT_TRUE(s);
    const pickled &names = (*s)["kpytrace"]["devices"];
    ASSERT_EQ(names.items.size(), TOLD + 3);
    EXPECT_EQ(names[TOLD].text, "cpu");
    EXPECT_EQ(names[TOLD + 1].text, "cuda:0");
    EXPECT_EQ(names[TOLD + 2].text, "cuda:1");
    ASSERT_EQ((*s)["segments"].items.size(), 3u);
    EXPECT_EQ((*s)["segments"][0]["allocated_size"].number, 10u);
    EXPECT_EQ((*s)["segments"][1]["allocated_size"].number, 0u);
    EXPECT_EQ((*s)["segments"][2]["allocated_size"].number, 1001u);
    const std::string json = write(".json");
    EXPECT_NE(json.find("\"Bytes\":-1000,\"Total Allocated\":0,\"Total Reserved\":0,"
                        "\"Device Type\":1,\"Device Id\":0"),
              std::string::npos)
        << json;
    EXPECT_NE(json.find("\"Device Type\":0,\"Device Id\":-1"), std::string::npos);
    EXPECT_NE(json.find("{\"ph\":\"C\",\"name\":\"cuda:1\""), std::string::npos);
}

TEST_F(Report, OfAnotherLogOrOfNoneIsNotRecorded)
{
    kpti_memory_log *other = log_make(0, 0);
    kpt_memory_report r = of(KPT_REPORT_ALLOC, BASE, 8);
    log_report(other, &r, 0);
    EXPECT_EQ(log_counted(other), 0u);
    r.address = 0;
    log_report(log, &r, 0);
    log_end(log);
    r.address = BASE;
    log_report(log, &r, 0);
    EXPECT_EQ(log_counted(log), 0u);
    log_free(other);
}

TEST_F(Report, TextsOfAnyBytesBecomeReadable)
{
    alloc(BASE, 64,
          "a\xff"
          "b");
    alloc(BASE + 64, 64, std::string(254, 'x') + "\xc3\xa4"); /* cut inside of its last letter */
    const auto s = snapshot();
    ASSERT_TRUE(s);
    const pickled &trace = (*s)["device_traces"][TOLD];
    EXPECT_EQ(trace[0]["user_metadata"].text, "a\xef\xbf\xbd"
                                              "b");
    EXPECT_EQ(trace[1]["user_metadata"].text, std::string(254, 'x') + "\xef\xbf\xbd");
}

TEST_F(Report, MorePoolsThanFitAreTheirDevices)
{
    const std::string long_one(1000, 'x');
    for (uint64_t i = 0; i < 5000; i++)
        alloc(BASE + i * 64, 64, std::to_string(i));
    alloc(BASE - 64, 64, long_one);
    for (uint64_t i = 0; i < 5000; i += 2)
        free_at(BASE + i * 64);
    const auto s = snapshot();
    ASSERT_TRUE(s);
    const pickled &trace = (*s)["device_traces"][TOLD];
    uint64_t owned = 0;
    ASSERT_EQ((*s)["device_traces"].items.size(), TOLD + 1);
    ASSERT_EQ(trace.items.size(), 7501u);
    for (uint64_t i = 0; i < 5000; i++) {
        if (!trace[i].fields.count("user_metadata")) continue;
        EXPECT_EQ(trace[i]["user_metadata"].text, std::to_string(i));
        owned++;
    }
    EXPECT_EQ(owned, 3072u);
    EXPECT_EQ((*s)["kpytrace"]["entries_merged"].number, 5001 - owned);
    EXPECT_EQ((*s)["kpytrace"]["frees_of_earlier_blocks"].number, 0u);
    EXPECT_EQ((*s)["segments"][0]["allocated_size"].number, 2501u * 64);
}

TEST_F(Report, MoreDevicesThanFitAreOthers)
{
    kpt_memory_report r = of(KPT_REPORT_ALLOC, BASE, 64);
    for (int32_t i = 0; i < 4100; i++, r.address += 64) {
        r.device_type = 2 + i;
        log_report(log, &r, 0);
    }
    r.action = KPT_REPORT_FREE;
    r.address -= 64;
    log_report(log, &r, 0);
    const auto s = snapshot();
    ASSERT_TRUE(s);
    const pickled &names = (*s)["kpytrace"]["devices"];
    EXPECT_EQ(names[names.items.size() - 1].text, "other");
    EXPECT_EQ((*s)["kpytrace"]["frees_of_earlier_blocks"].number, 0u);
    (void)write(".json");
}

TEST_F(Report, SamplesAddUp)
{
    make(0, 4096);
    sample_seed(11);
    const uint64_t count = 200000;
    for (uint64_t i = 0; i < count; i++)
        alloc(BASE + i * 512, 500);
    double bytes = 0;
    log_content content = log_read(log);
    for (uint64_t i = 0; i < content.count; i++)
        bytes += kpti_memory_weight(content.events[i].size, 4096) * 500;
    const uint64_t sampled = content.count;
    log_content_free(content);
    EXPECT_NEAR(bytes / (500.0 * static_cast<double>(count)), 1, 0.05);
    for (uint64_t i = 0; i < count; i++)
        free_at(BASE + i * 512);
    content = log_read(log);
    EXPECT_EQ(content.count, 2 * sampled);
    log_content_free(content);
}

TEST_F(Report, RingKeepsTheLast)
{
    make(1000, 0);
    for (uint64_t i = 0; i < 50000; i++)
        alloc(BASE + i * 64, 64, i % 2 ? "odd" : "even");
    const auto s = snapshot();
    ASSERT_TRUE(s);
    const pickled &trace = (*s)["device_traces"][TOLD];
    ASSERT_EQ(trace.items.size(), 1000u);
    EXPECT_EQ(trace[999]["addr"].number, BASE + 49999 * 64);
    EXPECT_EQ(trace[999]["user_metadata"].text, "odd");
    EXPECT_EQ((*s)["kpytrace"]["entries_dropped"].number, 49000u);
}

/* All threads come upon new pools at once; each is there once. */
TEST_F(Report, ManyThreads)
{
    constexpr uint64_t THREADS = 8;
    constexpr uint64_t OWNERS = 300;
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < THREADS; t++)
        threads.emplace_back([this, t] {
            for (uint64_t i = 0; i < OWNERS; i++)
                alloc(BASE + (t * OWNERS + i) * 64, 64, "owner " + std::to_string(i));
        });
    for (auto &thread : threads)
        thread.join();
    std::map<std::string, uint64_t> seen;
    const auto s = snapshot();
    ASSERT_TRUE(s);
    for (const auto &entry : (*s)["device_traces"][TOLD].items)
        seen[(*entry)["user_metadata"].text]++;
    EXPECT_EQ(seen.size(), OWNERS);
    for (const auto &[owner, count] : seen)
        EXPECT_EQ(count, THREADS) << owner;
    EXPECT_EQ((*s)["kpytrace"]["entries_merged"].number, 0u);
}

/* Allocation 1, 2, 3 … fails while blocks are reported: the lost blocks are counted, or have fewer details. */
TEST_F(Report, WithoutMemory)
{
    sample_seed(1); /* the thread is known */
    for (int after = 1; after < 8; after++) {
        make(0, 0);
        malloc_fails(after);
        for (uint64_t i = 0; i < 4; i++)
            alloc(BASE + i * 64, 64, "owner" + std::string(1, static_cast<char>('a' + i)));
        malloc_fails(0);
        const auto s = snapshot();
        ASSERT_TRUE(s);
        uint64_t kept = (*s)["kpytrace"]["entries_dropped"].number;
        for (const auto &trace : (*s)["device_traces"].items)
            kept += trace->items.size();
        EXPECT_EQ(kept, 4u) << after;
    }
}

} // namespace
