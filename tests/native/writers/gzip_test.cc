/* gzip_test.cc: compressed outputs, and outputs that a second thread writes: the same bytes in the same
 * order, and the first error is reported. */
#include <gtest/gtest.h>

#include <csignal>
#include <random>
#include <sys/resource.h>
#ifdef KPT_HAS_ZLIB
#include <zlib.h>
#endif

#include "tests/fixtures/batches/parcel.h"
#include "tests/fixtures/readers/inflate.h"
#include "tests/fixtures/readers/strict_json.h"
#include "tests/fixtures/scratch.h"
#include "writers/chrome/chrome_json.h"
#include "writers/writer.h"

namespace
{

class Gzip : public Scratch
{
  protected:
    /* The file's content, as any gzip reads it. */
    std::string unpacked(const std::string &name) const
    {
#ifdef KPT_HAS_ZLIB
        std::string text;
        char buffer[4096];
        gzFile file = gzopen(path(name).c_str(), "rb");
        EXPECT_NE(file, nullptr);
        EXPECT_EQ(gzdirect(file), 0) << "not compressed";
        int count;
        while ((count = gzread(file, buffer, sizeof buffer)) > 0)
            text.append(buffer, static_cast<size_t>(count));
        EXPECT_EQ(count, 0) << "damaged";
        EXPECT_EQ(gzclose(file), Z_OK);
        return text;
#else
        return gunzipped(content(name));
#endif
    }
};

/* SIZE bytes, each other than those around it. */
std::string long_text(size_t size)
{
    std::string text;
    for (size_t i = 0; text.size() < size; i++)
        text += std::to_string(i * 7919) + ",";
    text.resize(size);
    return text;
}

TEST_F(Gzip, FilesOfAnySizeAreReadBack)
{
    for (size_t size : {size_t{0}, size_t{1}, size_t{KPTI_OUT_BUFFER_BYTES} - 1,
                        size_t{KPTI_OUT_BUFFER_BYTES}, size_t{5} * KPTI_OUT_BUFFER_BYTES + 7}) {
        kpti_out_file out = {};
        std::string text = long_text(size);
        out.wants_gzip = 1;
        ASSERT_EQ(kpti_out_open(&out, path("t.gz").c_str()), 0);
        for (size_t at = 0; at < size; at += 1000)
            kpti_out_put(&out, text.data() + at, std::min<size_t>(1000, size - at));
        ASSERT_EQ(kpti_out_close(&out, 1), 0);
        EXPECT_EQ(unpacked("t.gz"), text) << size;
    }
    EXPECT_EQ(files(), 1u);
}

/* Lines that are equal except for their numbers. */
std::string trace_like(size_t size)
{
    std::string text;
    for (size_t i = 0; text.size() < size; i++)
        text += "{\"name\":\"f" + std::to_string(i % 37) + "\",\"ts\":" + std::to_string(i * 7919) +
                ",\"args\":{\"Python id\":" + std::to_string(i) + "}},\n";
    text.resize(size);
    return text;
}

TEST_F(Gzip, SeveralThreadsMakeOneStream)
{
    const size_t steps[] = {1, 1000, 65535, 131072, 1000000, 5000000};
    for (size_t size : {size_t{0}, size_t{1}, size_t{40000}, size_t{200000}, size_t{3333333}})
        for (size_t step : steps) {
            const std::string text = trace_like(size);
            std::string packed;
            kpti_gzip *stream;
            auto put = [](void *ctx, const char *data, size_t count) {
                static_cast<std::string *>(ctx)->append(data, count);
            };
            if (step == 1 && size > 40000) continue;
            ASSERT_EQ(kpti_gzip_open(&stream, put, &packed), 0);
            for (size_t at = 0; at < size; at += step)
                kpti_gzip_put(stream, text.data() + at, std::min(step, size - at));
            kpti_gzip_close(stream, 1);
            make_file("t.gz", packed);
            EXPECT_TRUE(unpacked("t.gz") == text) << size << " by " << step;
        }
}

#ifdef KPT_HAS_ZLIB
/* Calls as Kineto writes them: lines that differ in few numbers, of which the times are random. */
std::string calls_like_kinetos(size_t size)
{
    static const char *const files[] = {"torch/nn/modules/module.py", "torch/optim/adam.py",
                                        "torch/_tensor.py", "train.py", "torch/autograd/graph.py"};
    std::minstd_rand random(1);
    std::string text;
    double ns = 1e6;
    for (int i = 0; text.size() < size; i++) {
        char line[400];
        const int f = static_cast<int>(random() % 37);
        ns += static_cast<double>(random() % 5000);
        const int length = snprintf(
            line, sizeof line,
            "  {\n    \"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"%s(%d): "
            "function_%d\", \"pid\": 4711, \"tid\": 4711,\n    \"ts\": %.3f, \"dur\": %.3f,\n    "
            "\"args\": {\n"
            "      \"Python id\": %d, \"Python parent id\": %d, \"Ev Idx\": %d\n    }\n  },\n",
            files[f % 5], f * 17, f, ns / 1000, static_cast<double>(random() % 100000) / 1000, i,
            i - static_cast<int>(random() % 9), i + 5000);
        text.append(line, static_cast<size_t>(length));
    }
    return text;
}

/* The limit for torch's users: at most 1.1 times the bytes of Python's gzip. */
TEST_F(Gzip, TracesAreAsSmallAsOfTheBestLevel)
{
    const std::string text = calls_like_kinetos(8000000);
    size_t size = 0;
    kpti_gzip *stream;
    auto put = [](void *ctx, const char *, size_t count) { *static_cast<size_t *>(ctx) += count; };
    uLongf best = compressBound(text.size());
    std::string packed(best, 0);
    ASSERT_EQ(compress2(reinterpret_cast<Bytef *>(packed.data()), &best,
                        reinterpret_cast<const Bytef *>(text.data()), text.size(), 9),
              Z_OK);
    ASSERT_EQ(kpti_gzip_open(&stream, put, &size), 0);
    for (size_t at = 0; at < text.size(); at += 1000000)
        kpti_gzip_put(stream, text.data() + at, std::min<size_t>(1000000, text.size() - at));
    kpti_gzip_close(stream, 1);
    EXPECT_LT(size, best * 11 / 10) << best;
}
#endif

TEST_F(Gzip, WhatIsNotKeptLeavesNothing)
{
    kpti_out_file out = {};
    std::string text = long_text(3 * KPTI_OUT_BUFFER_BYTES);
    out.wants_gzip = 1;
    ASSERT_EQ(kpti_out_open(&out, path("t.gz").c_str()), 0);
    kpti_out_put(&out, text.data(), text.size());
    EXPECT_EQ(kpti_out_close(&out, 0), 0);
    EXPECT_EQ(files(), 0u);
}

TEST_F(Gzip, ATraceIsTheSameCompressedOrNot)
{
    std::string texts[2];
    for (int gzip = 0; gzip < 2; gzip++) {
        kpti_writer_options options = {};
        kpti_writer_result result;
        kpti_writer *writer;
        parcel p;
        p.name(0, "f \"\\ \xC3\xBC").thread(0, 1, "T");
        for (uint64_t i = 1; i <= 10000; i++)
            p.call(parcel::plain(i, i - 1, static_cast<int64_t>(i), 20000));
        options.gzip = gzip;
        options.trace_name = kpt_str{"t", 1};
        ASSERT_EQ(
            kpti_writer_open(&kpti_format_chrome, path("t").c_str(), &options, &writer, &result),
            KPT_OK);
        ASSERT_EQ(kpti_writer_batch(writer, p.batch()), KPT_OK);
        ASSERT_EQ(kpti_writer_close(writer, KPT_OK, nullptr, &result), KPT_OK);
        EXPECT_EQ(result.activities, 10000u);
        EXPECT_EQ(result.bytes, content("t").size());
        texts[gzip] = gzip ? unpacked("t") : content("t");
    }
    EXPECT_EQ(texts[0], texts[1]);
    EXPECT_EQ(read_json(texts[0])["traceEvents"].items.size(), 10003u);
}

/* A limit on the size of files simulates a full disk. */
TEST_F(Gzip, AnErrorOfTheSecondThreadIsTold)
{
    struct rlimit before;
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = {KPTI_OUT_BUFFER_BYTES, before.rlim_max};
    auto handler = signal(SIGXFSZ, SIG_IGN);
    kpti_out_file out = {};
    std::string text = long_text(20 * KPTI_OUT_BUFFER_BYTES);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    EXPECT_EQ(kpti_out_open(&out, path("t").c_str()), 0);
    kpti_out_put(&out, text.data(), text.size());
    EXPECT_EQ(kpti_out_error(&out), EFBIG) << "while there is still more to come";
    EXPECT_EQ(kpti_out_close(&out, 1), EFBIG);
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, handler);
    EXPECT_EQ(files(), 0u);
}

} // namespace
