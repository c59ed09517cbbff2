/* chrome_failure_test.cc: the trace file when things go wrong: the first failure is told, nothing is
 * left behind, and no memory is lost. */
#include "format.h"

#include "mock_host.h"
#include "parcel.h"
#include "scratch.h"

namespace
{

class ChromeFailure : public Scratch
{
  protected:
    kpt_status open(const std::string &name)
    {
        return kpti_writer_open(&kpti_format_chrome, name.c_str(), &options, &writer, &result);
    }

    kpti_writer_options options = {};
    kpti_writer_result result = {};
    kpti_writer *writer = nullptr;
};

parcel one_call()
{
    parcel p;
    p.name(0, "f").thread(0, 1, "T").call(parcel::plain(1, 0, 1, 2));
    return p;
}

TEST_F(ChromeFailure, AnUnwritablePathIsToldAtOpen)
{
    EXPECT_EQ(open(path("none/t.json")), KPT_E_IO);
    EXPECT_EQ(result.os_error, ENOENT);
    EXPECT_NE(std::string(result.text).find("none/t.json: No such file"), std::string::npos)
        << result.text;
    EXPECT_EQ(open(folder()), KPT_E_IO);
    EXPECT_EQ(result.os_error, EISDIR);
    EXPECT_EQ(open(""), KPT_E_INVALID);
    EXPECT_EQ(kpti_writer_open(&kpti_format_chrome, nullptr, &options, &writer, &result),
              KPT_E_INVALID);
    EXPECT_EQ(writer, nullptr);
    EXPECT_EQ(files(), 0u);
}

TEST_F(ChromeFailure, AFullDiskEndsTheDeliveryAndIsToldAtClose)
{
    parcel p = one_call();
    kpt_status status = KPT_OK;
    ASSERT_EQ(open("/dev/full"), KPT_OK);
    for (int i = 0; i < 100000 && status == KPT_OK; i++)
        status = kpti_writer_batch(writer, p.batch());
    EXPECT_EQ(status, KPT_E_IO) << "the sink cancels";
    EXPECT_EQ(kpti_writer_batch(writer, p.batch()), KPT_E_IO) << "and stays at that";
    EXPECT_EQ(kpti_writer_close(writer, status, nullptr, &result), KPT_E_IO);
    EXPECT_EQ(result.os_error, ENOSPC);
    EXPECT_STREQ(result.text, "/dev/full: No space left on device");
}

TEST_F(ChromeFailure, AShortTraceLearnsOfTheFullDiskAtClose)
{
    parcel p = one_call();
    ASSERT_EQ(open("/dev/full"), KPT_OK);
    EXPECT_EQ(kpti_writer_batch(writer, p.batch()), KPT_OK);
    EXPECT_EQ(kpti_writer_close(writer, KPT_OK, nullptr, &result), KPT_E_IO);
    EXPECT_EQ(result.os_error, ENOSPC);
}

TEST_F(ChromeFailure, AFailedDeliveryLeavesTheOldFile)
{
    parcel p = one_call();
    make_file("t.json", "old");
    ASSERT_EQ(open(path("t.json")), KPT_OK);
    EXPECT_EQ(kpti_writer_batch(writer, p.batch()), KPT_OK);
    EXPECT_EQ(kpti_writer_close(writer, KPT_E_MEMORY, nullptr, &result), KPT_E_MEMORY);
    EXPECT_EQ(result.os_error, 0);
    EXPECT_STRNE(result.text, "");
    EXPECT_EQ(content("t.json"), "old");
    EXPECT_EQ(files(), 1u);
}

TEST_F(ChromeFailure, AFolderThatVanishesIsToldAtClose)
{
    parcel p = one_call();
    std::filesystem::create_directory(path("sub"));
    ASSERT_EQ(open(path("sub/t.json")), KPT_OK);
    EXPECT_EQ(kpti_writer_batch(writer, p.batch()), KPT_OK);
    std::filesystem::remove_all(path("sub"));
    EXPECT_EQ(kpti_writer_close(writer, KPT_OK, nullptr, &result), KPT_E_IO);
    EXPECT_EQ(result.os_error, ENOENT);
    EXPECT_EQ(files(), 0u);
}

TEST_F(ChromeFailure, BeginAndEndEventsAreRefused)
{
    for (uint16_t phase : {KPT_PHASE_BEGIN, KPT_PHASE_END}) {
        parcel p;
        kpt_activity a = parcel::plain(1, 0, 1, 1);
        a.phase = phase;
        p.call(a);
        ASSERT_EQ(open(path("t.json")), KPT_OK);
        EXPECT_EQ(kpti_writer_batch(writer, p.batch()), KPT_E_UNSUPPORTED);
        EXPECT_EQ(kpti_writer_close(writer, KPT_OK, nullptr, &result), KPT_E_UNSUPPORTED);
        EXPECT_NE(std::string(result.text).find("order"), std::string::npos);
        EXPECT_EQ(files(), 0u);
    }
}

/* Changes one field of a good batch at a time. */
TEST_F(ChromeFailure, BatchesThatCanNotBeReadAreRefused)
{
    void (*const spoil[])(kpt_batch *) = {
        [](kpt_batch *b) { b->struct_size = KPT_BATCH_V1_SIZE - 1; },
        [](kpt_batch *b) { b->activity_stride = KPT_ACTIVITY_V1_SIZE - 8; },
        [](kpt_batch *b) { b->activity_stride = KPT_ACTIVITY_V1_SIZE + 1; },
        [](kpt_batch *b) { b->name_stride = KPT_NAME_V1_SIZE - 8; },
        [](kpt_batch *b) { b->thread_stride = KPT_THREAD_V1_SIZE - 8; },
        [](kpt_batch *b) { b->activities = nullptr; },
        [](kpt_batch *b) { b->names = nullptr; },
        [](kpt_batch *b) { b->threads = nullptr; },
    };
    for (auto change : spoil) {
        parcel p = one_call();
        kpt_batch batch = *p.batch();
        change(&batch);
        ASSERT_EQ(open(path("t.json")), KPT_OK);
        EXPECT_EQ(kpti_writer_batch(writer, &batch), KPT_E_SIZE);
        EXPECT_EQ(kpti_writer_close(writer, KPT_E_SIZE, nullptr, &result), KPT_E_SIZE);
    }
    ASSERT_EQ(open(path("t.json")), KPT_OK);
    EXPECT_EQ(kpti_writer_batch(writer, nullptr), KPT_E_SIZE);
    EXPECT_EQ(kpti_writer_close(writer, KPT_OK, nullptr, &result), KPT_E_SIZE);
    EXPECT_EQ(files(), 0u);
}

TEST_F(ChromeFailure, NumbersThatNobodyCountsToAreRefused)
{
    parcel p;
    p.name(UINT32_MAX, "far out");
    ASSERT_EQ(open(path("t.json")), KPT_OK);
    EXPECT_EQ(kpti_writer_batch(writer, p.batch()), KPT_E_LIMIT);
    EXPECT_EQ(kpti_writer_close(writer, KPT_OK, nullptr, &result), KPT_E_LIMIT);
}

/* Fails allocation 1, 2, 3 … until the whole of it succeeds. */
TEST_F(ChromeFailure, NoMemoryAtAnyPointIsToldAndLosesNothing)
{
    int failures = 0;
    for (uint64_t nth = 1;; nth++) {
        auto host = std::make_unique<mock_host>();
        mock_host_init(host.get(), "test");
        host->fail_alloc_at = nth;
        options.heap = {host.get(), host->table.alloc, host->table.dealloc};
        kpt_status status = open(path("t.json"));
        if (status == KPT_OK) {
            for (uint32_t i = 0; i < 3 && status == KPT_OK; i++) {
                parcel p;
                p.name(i * 1000, std::string(12000, 'n')).thread(i * 1000, i + 1, "T");
                status = kpti_writer_batch(writer, p.batch());
            }
            EXPECT_EQ(kpti_writer_close(writer, status, nullptr, &result), status);
        }
        EXPECT_EQ(host->live_blocks, 0u) << nth;
        EXPECT_EQ(host->bad_frees, 0u) << nth;
        if (status == KPT_OK) {
            EXPECT_LT(host->alloc_calls, nth);
            break;
        }
        EXPECT_EQ(status, KPT_E_MEMORY) << nth;
        EXPECT_STREQ(result.text, "no memory to write the trace");
        EXPECT_EQ(files(), 0u) << nth;
        failures++;
    }
    EXPECT_GE(failures, 7);
}

} // namespace
