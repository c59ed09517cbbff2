/* writer_failure_test.cc: failures of the trace file, in any format: the first failure is reported, no file
 * remains, and no memory leaks. */
#include "writers/chrome/chrome_json.h"
#include "writers/flame/collapsed.h"
#include "writers/flame/speedscope.h"
#include "writers/perfetto/perfetto.h"
#include "writers/report/report.h"
#include "writers/writer.h"

#include "tests/fixtures/batches/gpu_events.h"
#include "tests/fixtures/batches/parcel.h"
#include "tests/fixtures/failing_heap.h"
#include "tests/fixtures/scratch.h"

namespace
{

class WriterFailure : public Scratch, public testing::WithParamInterface<const kpti_format *>
{
  protected:
    kpt_status open(const std::string &name)
    {
        return kpti_writer_open(GetParam(), name.c_str(), &options, &writer, &result);
    }

    /* A call as the format wants it. */
    static void add_call(parcel &p, uint64_t id)
    {
        kpt_activity a = parcel::plain(id, 0, 1000, 9000);
        bool is_paired = GetParam()->order == KPT_ORDER_TIME;
        p.order = GetParam()->order;
        a.phase = is_paired ? KPT_PHASE_BEGIN : KPT_PHASE_COMPLETE;
        p.call(a);
        a.phase = KPT_PHASE_END;
        if (is_paired) p.call(a);
    }
    static parcel one_call()
    {
        parcel p;
        p.name(0, "f").thread(0, 1, "T");
        add_call(p, 1);
        return p;
    }

    kpti_writer_options options = {};
    kpti_writer_result result = {};
    kpti_writer *writer = nullptr;
};

TEST_P(WriterFailure, AnUnwritablePathIsToldAtOpen)
{
    EXPECT_EQ(open(path("none/t.json")), KPT_E_IO);
    EXPECT_EQ(result.os_error, ENOENT);
    EXPECT_NE(std::string(result.text).find("none/t.json: No such file"), std::string::npos)
        << result.text;
    EXPECT_EQ(open(folder()), KPT_E_IO);
    EXPECT_EQ(result.os_error, EISDIR);
    EXPECT_EQ(open(""), KPT_E_INVALID);
    EXPECT_EQ(kpti_writer_open(GetParam(), nullptr, &options, &writer, &result), KPT_E_INVALID);
    EXPECT_EQ(writer, nullptr);
    EXPECT_EQ(files(), 0u);
}

TEST_P(WriterFailure, AFullDiskEndsTheDeliveryAndIsToldAtClose)
{
    parcel p = one_call();
    kpt_status status = KPT_OK;
    bool writes_at_close =
        GetParam() == &kpti_format_collapsed || GetParam() == &kpti_format_speedscope ||
        GetParam() == &kpti_format_report; /* so few, compressed, that they fit into the buffer */
    ASSERT_EQ(open("/dev/full"), KPT_OK);
    for (int i = 0; i < 100000 && status == KPT_OK; i++)
        status = kpti_writer_batch(writer, p.batch());
    EXPECT_EQ(status, writes_at_close ? KPT_OK : KPT_E_IO) << "the sink cancels";
    EXPECT_EQ(kpti_writer_batch(writer, p.batch()), status) << "and stays at that";
    EXPECT_EQ(kpti_writer_close(writer, status, nullptr, &result), KPT_E_IO);
    EXPECT_EQ(result.os_error, ENOSPC);
    EXPECT_STREQ(result.text, "/dev/full: No space left on device");
}

TEST_P(WriterFailure, AShortTraceLearnsOfTheFullDiskAtClose)
{
    parcel p = one_call();
    ASSERT_EQ(open("/dev/full"), KPT_OK);
    EXPECT_EQ(kpti_writer_batch(writer, p.batch()), KPT_OK);
    EXPECT_EQ(kpti_writer_close(writer, KPT_OK, nullptr, &result), KPT_E_IO);
    EXPECT_EQ(result.os_error, ENOSPC);
}

TEST_P(WriterFailure, AFailedDeliveryLeavesTheOldFile)
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

TEST_P(WriterFailure, AFolderThatVanishesIsToldAtClose)
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

TEST_P(WriterFailure, AnotherOrderIsRefused)
{
    bool is_paired = GetParam()->order == KPT_ORDER_TIME;
    std::vector<uint16_t> wrong = {KPT_PHASE_COMPLETE};
    if (!is_paired) wrong = {KPT_PHASE_BEGIN, KPT_PHASE_END};
    for (uint16_t phase : wrong) {
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
TEST_P(WriterFailure, BatchesThatCanNotBeReadAreRefused)
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

/* A plugin of ABI 1.0 has shorter names, so the fields behind them belong to the next one. */
TEST_P(WriterFailure, NamesOfTheFirstAbiAreRead)
{
    parcel p = one_call();
    kpt_batch batch = *p.batch();
    const size_t bytes = static_cast<size_t>(batch.name_count) * KPT_NAME_V1_SIZE;
    std::vector<char> names(bytes); /* AddressSanitizer finds a read behind the last one */
    for (uint32_t i = 0; i < batch.name_count; i++) {
        kpt_name name = batch.names[i];
        memcpy(&names[static_cast<size_t>(i) * KPT_NAME_V1_SIZE], &name, KPT_NAME_V1_SIZE);
    }
    ASSERT_EQ(open(path("t.json")), KPT_OK);
    batch.names = reinterpret_cast<const kpt_name *>(names.data());
    batch.name_stride = KPT_NAME_V1_SIZE;
    EXPECT_EQ(kpti_writer_batch(writer, &batch), KPT_OK);
    EXPECT_EQ(kpti_writer_close(writer, KPT_OK, nullptr, &result), KPT_OK);
    EXPECT_EQ(result.names, batch.name_count);
}

TEST_P(WriterFailure, NumbersThatNobodyCountsToAreRefused)
{
    parcel p;
    p.name(UINT32_MAX, "far out");
    ASSERT_EQ(open(path("t.json")), KPT_OK);
    EXPECT_EQ(kpti_writer_batch(writer, p.batch()), KPT_E_LIMIT);
    EXPECT_EQ(kpti_writer_close(writer, KPT_OK, nullptr, &result), KPT_E_LIMIT);
}

/* A mark, a counter, and a span that began. */
void add_notes(kpti_notes *notes)
{
    for (uint32_t what : {KPTI_NOTE_MARK, KPTI_NOTE_COUNTER, KPTI_NOTE_BEGIN}) {
        kpti_note note = {};
        note.what = what;
        note.name = {"note", 4};
        note.args = {"\"k\":1", 5};
        note.flow = 7;
        ASSERT_NE(kpti_notes_add(notes, &note), 0u);
    }
}

/* Fails allocation 1, 2, 3 … until all calls succeed. */
TEST_P(WriterFailure, NoMemoryAtAnyPointIsToldAndLosesNothing)
{
    kpti_notes notes = {};
    kpti_gpu_log gpu;
    const kpti_heap plain = {};
    kpti_gpu_log_init(&gpu, &plain);
    ASSERT_EQ(add_gpu_device(gpu), KPT_OK);
    for (uint64_t i = 1; i < 100; i++) {
        ASSERT_EQ(add_gpu(gpu, KPT_GPU_KERNEL, "k", 5, 6, i, 3), KPT_OK);
        ASSERT_EQ(add_gpu(gpu, KPT_GPU_RUNTIME, "c", 1, 2, i, 3), KPT_OK);
    }
    add_notes(&notes);
    options.notes = &notes;
    options.gpu = &gpu;
    const uint64_t failures = fail_each_allocation([&](const kpti_heap &heap) {
        options.heap = heap;
        kpt_status status = open(path("t.json"));
        if (status == KPT_OK) {
            for (uint32_t i = 0; i < 3 && status == KPT_OK; i++) {
                parcel p;
                kpt_activity point = parcel::plain(0, 0, 10000, 10000);
                point.kind = KPT_KIND_POINT;
                point.thread = i * 1000;
                point.value0 = i + 1;
                p.name(0, "f").name(i * 1000 + 1, std::string(12000, 'n'));
                p.thread(i * 1000, i + 1, "T");
                for (uint64_t k = 1; k < 100; k++)
                    add_call(p, i * 100 + k);
                p.call(point);
                status = kpti_writer_batch(writer, p.batch());
            }
            status = kpti_writer_close(writer, status, nullptr, &result);
        }
        if (status != KPT_OK) {
            EXPECT_STREQ(result.text, "no memory to write the trace");
            EXPECT_EQ(files(), 0u);
        }
        return status;
    });
    EXPECT_GE(failures, 7U);
    kpti_notes_free(&notes);
    kpti_gpu_log_free(&gpu);
}

INSTANTIATE_TEST_SUITE_P(All, WriterFailure,
                         testing::Values(&kpti_format_chrome, &kpti_format_perfetto,
                                         &kpti_format_speedscope, &kpti_format_collapsed,
                                         &kpti_format_report),
                         [](const testing::TestParamInfo<const kpti_format *> &tested) {
                             std::string name = tested.param->name;
                             return name.substr(0, name.find(' '));
                         });

} // namespace
