/* gpu_log_test.cc: the log of GPU activities: added events are read back, packed, from a file, and after
 * failed allocations; damaged logs are refused. */
#include "writers/gpu/gpu_log.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/fixtures/batches/gpu_events.h"
#include "tests/fixtures/failing_heap.h"
#include "tests/fixtures/scratch.h"
#include "writers/gpu/gpu_codec.h"
#include "writers/gpu/gpu_names.h"
#include "writers/gpu/gpu_summary.h"
#include "writers/kpt/kpt_gpu.h"
#include "writers/kpt/kpt_gpu_read.h"
#include "writers/kpt/kpt_reader.h"

namespace
{

const kpti_heap plain_heap = {};

class GpuLog : public Scratch
{
  protected:
    GpuLog()
    {
        kpti_gpu_log_init(&log, &plain_heap);
        kpti_gpu_log_init(&copy, &plain_heap);
    }
    ~GpuLog() override
    {
        kpti_gpu_log_free(&log);
        kpti_gpu_log_free(&copy);
    }
    static std::vector<kpti_gpu_entry> all(const kpti_gpu_log &of)
    {
        std::vector<kpti_gpu_entry> found;
        kpti_gpu_cursor cursor = {};
        cursor.log = &of;
        while (const kpti_gpu_entry *e = kpti_gpu_next(&cursor))
            found.push_back(*e);
        return found;
    }
    /* The records that a file would have of the log. */
    std::vector<std::string> records()
    {
        kpti_kpt_writer writer = {};
        kpti_gpu_written written = {};
        std::vector<std::string> found;
        EXPECT_EQ(kpti_kpt_create(&writer, path("t.kpt").c_str(), 0, 1, 0, kpt_str_of("")), 0);
        EXPECT_EQ(kpti_gpu_put(&writer, &log, &written), 0u);
        kpti_gpu_put_counts(&writer, &log);
        EXPECT_EQ(kpti_kpt_close(&writer, 1), 0);
        const std::string bytes = content("t.kpt");
        for (size_t at = sizeof(kpti_kpt_head); at < bytes.size();) {
            kpti_kpt_record head;
            memcpy(&head, bytes.data() + at, sizeof head);
            at += sizeof head;
            if (head.kind == KPTI_KPT_GPU) found.push_back(bytes.substr(at, head.size));
            at += head.size + kpti_kpt_padding(head.size);
        }
        return found;
    }
    kpt_status take(const std::string &record)
    {
        return kpti_gpu_take(&copy, record.data(), record.size());
    }

    kpti_gpu_log log, copy;
};

TEST_F(GpuLog, WhateverIsAddedComesBack)
{
    std::mt19937_64 random(1);
    std::vector<kpt_gpu_event> added;
    for (int i = 0; i < 5000; i++) {
        added.push_back(any_gpu_event(random));
        added.back().name = kpt_str_of(i % 3 ? "kernel" : "another");
        ASSERT_EQ(kpti_gpu_log_add(&log, &added.back(), 0), KPT_OK);
    }
    auto found = all(log);
    ASSERT_EQ(found.size(), added.size());
    EXPECT_EQ(log.events, added.size());
    for (size_t i = 0; i < added.size(); i++) {
        EXPECT_EQ(gpu_name(&found[i]), added[i].name.data);
        found[i].event.name = added[i].name;
        EXPECT_EQ(memcmp(&found[i].event, &added[i], sizeof added[i]), 0) << i;
    }
}

TEST_F(GpuLog, RowsOfKernelsAreSmall)
{
    for (int i = 0; i < 1000; i++) {
        ASSERT_EQ(add_gpu(log, KPT_GPU_RUNTIME, "cudaLaunchKernel", i * 5000, i * 5000 + 2000,
                          static_cast<uint64_t>(i), 3),
                  KPT_OK);
        ASSERT_EQ(add_gpu(log, KPT_GPU_KERNEL, "k", i * 5000 + 4000, i * 5000 + 5000,
                          static_cast<uint64_t>(i), 3),
                  KPT_OK);
    }
    EXPECT_LT(log.bytes, 2000 * 24u);
    EXPECT_EQ(log.node_count, 2u);
    EXPECT_EQ(log.kernels, 1000u);
}

TEST_F(GpuLog, ABudgetDropsWhatComesAndARingWhatWas)
{
    log.most_bytes = 100;
    for (int i = 0; i < 100; i++)
        ASSERT_EQ(add_gpu(log, KPT_GPU_KERNEL, "k", i, i + 1), KPT_OK);
    EXPECT_GT(log.counts.dropped, 50u);
    EXPECT_EQ(log.events + log.counts.dropped, 100u);
    copy.most_bytes = 200000;
    copy.is_ring = 1;
    for (int i = 0; i < 100000; i++)
        ASSERT_EQ(add_gpu(copy, KPT_GPU_KERNEL, std::to_string(i % 7), i, i + 1), KPT_OK);
    EXPECT_LE(copy.bytes, 200000u);
    EXPECT_GT(copy.bytes, 100000u);
    auto kept = all(copy);
    EXPECT_EQ(kept.size(), copy.events);
    EXPECT_EQ(kept.back().event.start_ns, 99999);
    EXPECT_EQ(kept.front().event.start_ns, 100000 - static_cast<int64_t>(kept.size()));
    EXPECT_EQ(copy.kernels, 100000u);
    EXPECT_EQ(copy.counts.dropped, 0u);
}

TEST_F(GpuLog, NamesThatPeopleKnow)
{
    char buffer[KPTI_GPU_MAX_WORDS];
    auto name = [&](uint32_t kind, uint32_t copy_kind, uint32_t from, uint32_t to) {
        kpt_gpu_event e = {};
        e.kind = static_cast<uint16_t>(kind);
        e.copy_kind = e.sync_kind = copy_kind;
        e.source_kind = from;
        e.target_kind = to;
        const kpt_str text = kpti_gpu_words_for(&e, buffer);
        return std::string(text.data, text.size);
    };
    EXPECT_EQ(name(KPT_GPU_MEMCPY, 1, 1, 3), "Memcpy HtoD (Pageable -> Device)");
    EXPECT_EQ(name(KPT_GPU_MEMCPY, 8, 3, 3), "Memcpy DtoD (Device -> Device)");
    EXPECT_EQ(name(KPT_GPU_MEMCPY, 999, 999, 999), "Memcpy Unknown (Unknown -> Unknown)");
    EXPECT_EQ(name(KPT_GPU_MEMSET, 0, 0, 5), "Memset (Managed)");
    EXPECT_EQ(name(KPT_GPU_SYNC, 4, 0, 0), "Context Sync");
    EXPECT_EQ(name(12345, 0, 0, 0), "GPU activity");
    EXPECT_STREQ(kpti_gpu_category(KPT_GPU_DRIVER), "cuda_driver");
}

TEST_F(GpuLog, OccupancyIsAsCudaCountsIt)
{
    kpt_gpu_device d = {};
    kpt_gpu_event k = {};
    d.multiprocessors = 132;
    d.warp_size = 32;
    d.compute_major = 9;
    d.max_threads_per_multiprocessor = 2048;
    d.registers_per_multiprocessor = 65536;
    d.shared_bytes_per_multiprocessor = 233472;
    k.grid[0] = 100000;
    k.grid[1] = k.grid[2] = k.block[1] = k.block[2] = 1;
    k.block[0] = 256;
    k.registers = 32;
    EXPECT_EQ(kpti_gpu_fill_of(&k, &d).occupancy, 100);
    k.registers = 128; /* 2 blocks fit */
    EXPECT_EQ(kpti_gpu_fill_of(&k, &d).occupancy, 25);
    k.registers = 32;
    k.shared_dynamic_bytes = 100 * 1024; /* 2 blocks */
    EXPECT_EQ(kpti_gpu_fill_of(&k, &d).occupancy, 25);
    k.grid[0] = 66; /* half a block for each multiprocessor */
    EXPECT_EQ(kpti_gpu_fill_of(&k, &d).occupancy, 6);
    EXPECT_EQ(kpti_gpu_fill_of(&k, nullptr).occupancy, 0);
    k.block[0] = 0;
    EXPECT_EQ(kpti_gpu_fill_of(&k, &d).occupancy, 0);
}

TEST_F(GpuLog, TheOwnLineIsNoLibrarys)
{
    uint32_t stack = 0;
    for (const char *file : {"/home/me/train.py", "/usr/lib/python3.12/runpy.py",
                             "/v/site-packages/torch/nn.py", "/v/dist-packages/x.py"}) {
        kpti_gpu_node node = {stack, 0, 0, 9};
        ASSERT_EQ(kpti_gpu_log_text(&log, kpt_str_of(file), &node.file), KPT_OK);
        ASSERT_EQ(kpti_gpu_log_node(&log, &node, &stack), KPT_OK);
    }
    EXPECT_EQ(kpti_gpu_own_frame(&log, stack), &log.nodes[1]);
    EXPECT_EQ(kpti_gpu_own_frame(&log, 0), nullptr);
    EXPECT_EQ(kpti_gpu_own_frame(&log, 99), nullptr);
    log.nodes[1].file = log.nodes[2].file;
    EXPECT_EQ(kpti_gpu_own_frame(&log, stack), &log.nodes[4]) << "all are: the innermost";
}

/* --- files ------------------------------------------------------------------------------------- */

TEST_F(GpuLog, AFileHasAllOfIt)
{
    kpt_gpu_name name = {KPT_GPU_NAMES_STREAM, 7, {"side", 4}};
    ASSERT_EQ(add_gpu_device(log), KPT_OK);
    ASSERT_EQ(kpti_gpu_log_name(&log, &name), KPT_OK);
    for (int i = 0; i < 20000; i++)
        ASSERT_EQ(add_gpu(log, KPT_GPU_KERNEL, "k" + std::to_string(i % 5000), i, i + 1, 0,
                          static_cast<uint32_t>(i % 6000) + 1),
                  KPT_OK);
    log.counts = {3, 4};
    const auto kept = records(); /* which the copy borrows from */
    for (const std::string &record : kept)
        ASSERT_EQ(take(record), KPT_OK);
    EXPECT_EQ(copy.counts.dropped, 3u);
    EXPECT_EQ(copy.counts.lost_kernels, 4u);
    EXPECT_EQ(copy.kernels, log.kernels);
    ASSERT_EQ(copy.device_count, 1u);
    EXPECT_EQ(copy.devices[0].memory_bytes, UINT64_C(1) << 40);
    EXPECT_EQ(std::string(copy.devices[0].name.data, copy.devices[0].name.size), "A \"GPU\"");
    EXPECT_EQ(kpti_gpu_name_of(&copy, KPT_GPU_NAMES_STREAM, 7).size, 4u);
    EXPECT_EQ(kpti_gpu_name_of(&copy, KPT_GPU_NAMES_DEVICE, 7).size, 0u);
    EXPECT_EQ(copy.node_count, log.node_count);
    const auto one = all(log), two = all(copy);
    ASSERT_EQ(one.size(), two.size());
    for (size_t i = 0; i < one.size(); i++) {
        EXPECT_EQ(gpu_name(&one[i]), gpu_name(&two[i]));
        EXPECT_EQ(one[i].stack, two[i].stack);
    }
    kpti_gpu_log_forget(&copy);
}

TEST_F(GpuLog, ARecordThatIsNoneIsRefused)
{
    ASSERT_EQ(add_gpu_device(log), KPT_OK);
    for (int i = 0; i < 3; i++)
        ASSERT_EQ(add_gpu(log, KPT_GPU_KERNEL, "k", i, i + 1, 5, 8), KPT_OK);
    const auto whole = records();
    for (size_t i = 0; i < whole.size(); i++) {
        kpti_gpu_log_free(&copy);
        for (size_t k = 0; k < i; k++)
            ASSERT_EQ(take(whole[k]), KPT_OK);
        for (size_t size = 0; size < whole[i].size(); size++)
            EXPECT_EQ(take(whole[i].substr(0, size)), KPT_E_INVALID) << i << " cut at " << size;
    }
    EXPECT_EQ(take(std::string("\x63\0\0\0", 4) + std::string(12, 0)), KPT_OK) << "a newer one's";
    kpti_gpu_log_forget(&copy);
}

TEST_F(GpuLog, RecordsOfAnythingDoNoHarm)
{
    std::mt19937_64 random(2);
    ASSERT_EQ(add_gpu_device(log), KPT_OK);
    for (int i = 0; i < 3; i++)
        ASSERT_EQ(add_gpu(log, KPT_GPU_KERNEL, "k", i, i + 1, 5, 8), KPT_OK);
    const auto whole = records();
    for (int round = 0; round < 3000; round++) {
        std::vector<std::string> kept = whole; /* which the log borrows from */
        kpti_gpu_log_free(&copy);
        for (std::string &record : kept) {
            if (random() % 2) record[random() % record.size()] ^= static_cast<char>(random());
            (void)take(record);
        }
        (void)all(copy);
        kpti_gpu_report report = {};
        EXPECT_EQ(kpti_gpu_report_make(&report, &copy, nullptr), KPT_OK);
        kpti_gpu_report_free(&report);
        kpti_gpu_log_free(&copy);
    }
}

/* --- tables ------------------------------------------------------------------------------------ */

TEST_F(GpuLog, AReportAddsUp)
{
    /* In no order, on two lines; the copy overlaps a kernel. */
    ASSERT_EQ(add_gpu(log, KPT_GPU_KERNEL, "b", 500, 600, 2, 9), KPT_OK);
    ASSERT_EQ(add_gpu(log, KPT_GPU_KERNEL, "a", 100, 200, 1, 8), KPT_OK);
    ASSERT_EQ(add_gpu(log, KPT_GPU_KERNEL, "a", 250, 450, 3, 8), KPT_OK);
    ASSERT_EQ(add_gpu(log, KPT_GPU_MEMCPY, "", 400, 480, 4, 9), KPT_OK);
    ASSERT_EQ(add_gpu(log, KPT_GPU_RUNTIME, "cudaLaunchKernel", 0, 90, 1, 8), KPT_OK);
    kpti_gpu_report report = {};
    ASSERT_EQ(kpti_gpu_report_make(&report, &log, nullptr), KPT_OK);
    ASSERT_EQ(report.name_count, 3u);
    EXPECT_EQ(report.names[0].total_ns, 300u);
    EXPECT_EQ(report.names[0].max_ns, 200u);
    EXPECT_EQ(report.names[0].count, 2u);
    ASSERT_EQ(report.line_count, 2u);
    EXPECT_EQ(log.nodes[report.lines[0].name].line, 8u);
    EXPECT_EQ(report.lines[1].total_ns, 180u);
    ASSERT_EQ(report.device_count, 1u);
    const kpti_gpu_busy &d = report.devices[0];
    EXPECT_EQ(d.last_ns - d.first_ns, 500);
    EXPECT_EQ(d.busy_ns, 430u);
    EXPECT_EQ(d.kernels, 3u);
    ASSERT_EQ(d.gap_count, 2u);
    EXPECT_EQ(d.gaps[0].end_ns - d.gaps[0].start_ns, 50);
    EXPECT_EQ(d.gaps[1].start_ns, 480);
    kpti_gpu_report_free(&report);
}

TEST_F(GpuLog, TheLongestGapsAreKept)
{
    int64_t at = 0;
    for (int i = 1; i <= 100; i++) {
        ASSERT_EQ(add_gpu(log, KPT_GPU_KERNEL, "k", at, at + 1), KPT_OK);
        at += 1 + (i * 37) % 101;
    }
    kpti_gpu_report report = {};
    ASSERT_EQ(kpti_gpu_report_make(&report, &log, nullptr), KPT_OK);
    const kpti_gpu_busy &d = report.devices[0];
    ASSERT_EQ(d.gap_count, static_cast<uint32_t>(KPTI_GPU_GAPS));
    for (uint32_t i = 0; i + 1 < d.gap_count; i++)
        EXPECT_GE(d.gaps[i].end_ns - d.gaps[i].start_ns,
                  d.gaps[i + 1].end_ns - d.gaps[i + 1].start_ns);
    EXPECT_GE(d.gaps[0].end_ns - d.gaps[0].start_ns, 99);
    kpti_gpu_report_free(&report);
}

/* --- memory ------------------------------------------------------------------------------------ */

TEST(GpuMemory, NoneAtAnyPointLosesNothing)
{
    const uint64_t failures = fail_each_allocation([](const kpti_heap &heap) {
        kpti_gpu_log log;
        kpti_gpu_report report = {};
        kpti_gpu_log_init(&log, &heap);
        report.heap = heap;
        kpt_status status = add_gpu_device(log);
        for (uint32_t i = 0; i < 200 && status == KPT_OK; i++)
            status = add_gpu(log, KPT_GPU_KERNEL, "k" + std::to_string(i), i, i + 1, i, i + 1);
        if (status == KPT_OK) status = kpti_gpu_report_make(&report, &log, nullptr);
        kpti_gpu_report_free(&report);
        kpti_gpu_log_free(&log);
        return status;
    });
    EXPECT_GE(failures, 15U);
}

} // namespace
