/* kineto_gpu_test.cc: text is inserted into the arguments of GPU activities in a trace of Kineto; all other
 * bytes stay. */
#include <gtest/gtest.h>

#include "tests/fixtures/batches/kineto_text.h"
#include "tests/fixtures/failing_heap.h"
#include "tests/fixtures/readers/strict_json.h"
#include "tests/fixtures/scratch.h"
#include "writers/kineto/kineto_splice.h"

namespace
{

const int64_t BASE_NS = 1790857026000000000;

std::string number(uint64_t value)
{
    return std::to_string(value);
}

/* A call of CUDA, as Kineto has it. */
std::string launch(uint64_t correlation, const std::string &us, uint64_t tid = 100,
                   const std::string &cat = "cuda_runtime")
{
    return "  {\n    \"ph\": \"X\", \"cat\": \"" + cat +
           "\", \"name\": \"cudaLaunchKernel\", \"pid\": 99, \"tid\": " + number(tid) +
           ",\n    \"ts\": " + us +
           ", \"dur\": 4.321,\n    \"args\": {\n      \"External id\": 12,\"cbid\": 211, "
           "\"correlation\": " +
           number(correlation) + "\n    }\n  },\n";
}

std::string arguments(uint64_t correlation)
{
    return "{\n      \"External id\": 12,\n      \"queued\": 0, \"device\": 0, \"context\": 1,\n"
           "      \"stream\": 7, \"correlation\": " +
           number(correlation) +
           ",\n      \"registers per thread\": 32,\n      \"shared memory\": 0,\n"
           "      \"blocks per SM\": 0.0075757575,\n      \"grid\": [1, 1, 1],\n"
           "      \"block\": [128, 1, 1],\n      \"est. achieved occupancy %\": 0\n    }";
}

std::string work(const std::string &args, const std::string &cat = "kernel",
                 const std::string &name = "void at::vectorized<4>(int)")
{
    return "  {\n    \"ph\": \"X\", \"cat\": \"" + cat + "\", \"name\": \"" + name +
           "\", \"pid\": 0, \"tid\": 7,\n    \"ts\": 3865832816400.001, \"dur\": 1.504,\n"
           "    \"args\": " +
           args + "\n  },\n";
}

std::string trace(const std::string &events)
{
    return kineto(events, "", "", "    {\"id\": 0, \"name\": \"GPU\"}\n");
}

class KinetoGpu : public Scratch
{
  protected:
    ~KinetoGpu() override
    {
        kpti_kineto_gpu_free(&gpu);
        kpti_fragments_free(&texts);
    }

    int read(const std::string &text)
    {
        const char *why;
        int error;
        make_file("t.json", text);
        kpti_kineto_gpu_free(&gpu);
        file.heap = {};
        error = kpti_kineto_open(&file, path("t.json").c_str(), &why);
        if (error) return error;
        error = kpti_kineto_gpu_read(&gpu, &file);
        kpti_kineto_close(&file);
        return error;
    }

    /* Reads TEXT, adds a stack of its tid and time to each launch, and returns the output. */
    std::string stacked(const std::string &text)
    {
        kpti_splice s;
        kpti_splice_error error;
        const kpti_splice_stacks stacks = {&gpu, &texts};
        EXPECT_EQ(read(text), 0);
        for (uint32_t i = 0; i < gpu.launch_count; i++) {
            const kpti_kineto_launch &l = gpu.launches[i];
            std::string own = "\"Python stack\": \"" + number(l.tid) + "@" +
                              number(static_cast<uint64_t>(l.time_ns - BASE_NS)) + "\"";
            char *capacity = kpti_fragments_reserve(&texts, own.size());
            own.copy(capacity, own.size());
            EXPECT_EQ(kpti_fragments_set(&texts, i + 1, capacity, own.size(), 0), KPT_OK);
            gpu.launches[i].stack = l.tid ? i + 1 : 0;
        }
        kpti_kineto_gpu_sort(&gpu);
        EXPECT_EQ(kpti_splice_open(&s, path("t.json").c_str(), &error), 0);
        EXPECT_EQ(kpti_splice_begin(&s, path("out.json").c_str(), 0, &stacks, &error), 0);
        EXPECT_EQ(kpti_splice_close(&s, 1, &error), 0);
        return content("out.json");
    }

    /* Returns the stacks of the GPU activities in TEXT. */
    static std::vector<std::string> stacks_in(const std::string &text)
    {
        std::vector<std::string> found;
        json all = read_json(text);
        for (const json &event : all["traceEvents"].items)
            if (event["cat"].text == "kernel" || event["cat"].text.rfind("gpu_", 0) == 0)
                found.push_back(event["args"]["Python stack"].text);
        return found;
    }

    /* Without them. */
    static std::string without(std::string text)
    {
        for (size_t at; (at = text.find("\"Python stack\": \"")) != std::string::npos;) {
            size_t begin = at >= 2 && text[at - 2] == ',' ? at - 2 : at;
            text.erase(begin, text.find('"', at + 17) + 1 - begin);
        }
        return text;
    }

    kpti_kineto_file file = {};
    kpti_kineto_gpu gpu = {};
    kpti_fragments texts = {};
};

using Rows = std::vector<std::string>;

TEST_F(KinetoGpu, EachHasTheStackOfItsLaunchAndAllElseStays)
{
    std::string text = trace(
        work(arguments(5)) + launch(5, "10.001") + launch(6, "20", 200, "cuda_driver") +
        launch(7, "30.5") + work(arguments(6), "gpu_memcpy") + work(arguments(7), "gpu_memset") +
        work(arguments(7)) + work(arguments(8)) + work(arguments(5), "cuda_sync"));
    std::string out = stacked(text);
    EXPECT_EQ(stacks_in(out), (Rows{"100@10001", "200@20000", "100@30500", "100@30500", ""}));
    EXPECT_EQ(without(out), text);
    EXPECT_NE(out.find("occupancy %\": 0, \"Python stack\": \"100@10001\"\n    }"),
              std::string::npos)
        << "behind the others";
    ASSERT_EQ(gpu.launch_count, 3u);
    ASSERT_EQ(gpu.work_count, 5u);
}

TEST_F(KinetoGpu, LaunchesAreByTimeAtFirst)
{
    ASSERT_EQ(read(trace(launch(1, "30.000") + launch(2, "10.25") + launch(3, "20.000") +
                         work(arguments(1)))),
              0);
    ASSERT_EQ(gpu.launch_count, 3u);
    EXPECT_EQ(gpu.launches[0].time_ns, BASE_NS + 10250);
    EXPECT_EQ(gpu.launches[1].correlation, 3u);
    EXPECT_EQ(gpu.launches[2].time_ns, BASE_NS + 30000);
}

TEST_F(KinetoGpu, AnySpacingAndOrderOfKeys)
{
    std::string text = trace(
        "{\"args\":{\"correlation\":5},\"ts\":1.001,\"tid\":3,\"cat\":\"cuda_runtime\"},"
        "{ \"args\" \t:\r\n {\t} ,\"cat\":\"kernel\",\"correlation\":5},"
        "{\"args\"\n:\n{ \"correlation\"\t:\t5\t}\n,\"cat\" : \"kernel\"},"
        "{\"args\":{\"correlation\":5,\"a\":{\"correlation\":6},\"b\":[]},\"cat\":\"gpu_memset\"},"
        "{\"args\":{\"a\":{\"correlation\":5}},\"cat\":\"kernel\"},"
        "{\"args\":[5],\"cat\":\"kernel\"},{\"cat\":\"kernel\"},{},");
    std::string out = stacked(text);
    EXPECT_EQ(stacks_in(out), (Rows{"", "3@1001", "3@1001", "", "", ""}));
    EXPECT_EQ(without(out), text);
    EXPECT_NE(out.find("\t5, \"Python stack\": \"3@1001\"\t}"), std::string::npos);
}

TEST_F(KinetoGpu, WhatIsInStringsIsNoField)
{
    std::string name = "f<\\\"correlation\\\": 6, \\\"cat\\\": \\\"kernel\\\", {[\\\\>";
    std::string text =
        trace(launch(5, "1.000") + launch(6, "2.000") + work(arguments(5), "kernel", name) +
              work("{\"a\": \"\\\"correlation\\\": 6\", \"correlation\": 5}") +
              work("{\"a\": \"\\\"correlation\\\": 6\"}", "kernel", name) +
              work("{\"correlation\": 6}", "cpu_op", name));
    std::string out = stacked(text);
    EXPECT_EQ(stacks_in(out), (Rows{"100@1000", "100@1000", ""}));
    EXPECT_EQ(without(out), text);
}

TEST_F(KinetoGpu, WhatIsNoNumberOfALaunchIsPassedBy)
{
    const std::string bad[] = {"\"7\"", "-7", "7.5", "7e1", "null", "99999999999999999999"};
    std::string text = launch(1, "1.0001") + launch(1, "-1") + launch(1, "1e3") +
                       launch(1, "\"1\"") + launch(1, "9999999999999999.000") +
                       launch(1, "1.000", 5000000000);
    for (const std::string &row : bad)
        text += work("{\"correlation\": " + row + "}");
    text = trace(text + work(arguments(1)));
    EXPECT_EQ(stacked(text), text);
    EXPECT_EQ(gpu.launch_count, 0u);
    EXPECT_EQ(gpu.work_count, 1u);
}

TEST_F(KinetoGpu, OneThatHasAStackKeepsIt)
{
    std::string text =
        trace(launch(1, "1.000") + work("{\"Python stack\": \"a\", \"correlation\": 1}"));
    EXPECT_EQ(stacked(text), text);
}

TEST_F(KinetoGpu, ALaunchWithoutAStackLeavesItsKernels)
{
    std::string text = trace(launch(1, "1.000", 0) + work(arguments(1)));
    EXPECT_EQ(stacked(text), text);
}

TEST_F(KinetoGpu, TheHeadSaysWhetherThereAreDevices)
{
    EXPECT_EQ(read(kineto()), 0);
    EXPECT_FALSE(file.has_devices);
    EXPECT_EQ(read(trace("")), 0);
    EXPECT_TRUE(file.has_devices);
    std::string other = kineto();
    other.replace(other.find("deviceP"), 7, "devicep");
    EXPECT_EQ(read(other), 0);
    EXPECT_TRUE(file.has_devices) << "it does not say so";
}

TEST_F(KinetoGpu, EventsThatAreNoJsonAreTold)
{
    const std::string rows[] = {"{\"a\": 1,},",     "{\"a\" 1},",
                                "{\"a\": nan},",    "5,",
                                "{} {},",           "{\"args\": {]}},",
                                "{\"a\": \"\n\"},", "{\"args\": {\"correlation\": 05}},"};
    for (const std::string &row : rows) {
        EXPECT_EQ(read(trace(launch(1, "1.000") + row + work(arguments(1)))), EBADMSG) << row;
        EXPECT_EQ(read(trace(row)), EBADMSG) << row;
    }
    EXPECT_EQ(read(trace(work(arguments(1)) + ",")), EBADMSG);
}

TEST_F(KinetoGpu, AFileThatEndsAnywhereIsNone)
{
    std::string text = trace(launch(1, "1.000") + work(arguments(1)));
    for (size_t i = 0; i < text.size(); i += 3)
        EXPECT_EQ(read(text.substr(0, i)), EBADMSG) << i;
}

/* The list ends where the file ends it, wherever the text is truncated. */
TEST_F(KinetoGpu, AListThatEndsAnywhereIsReadOrTold)
{
    const char *why;
    ASSERT_EQ(read(trace(launch(1, "1.000") + work(arguments(1)))), 0);
    ASSERT_EQ(kpti_kineto_open(&file, path("t.json").c_str(), &why), 0);
    for (uint64_t end = file.events_end - 1; end > file.events_begin; end--) {
        file.events_end = end;
        kpti_kineto_gpu_free(&gpu);
        int error = kpti_kineto_gpu_read(&gpu, &file);
        EXPECT_TRUE(error == EBADMSG || (error == 0 && gpu.launch_count == 1)) << end;
    }
    kpti_kineto_close(&file);
}

TEST_F(KinetoGpu, EventsLongerThanAWindow)
{
    std::string text =
        trace(launch(1, "1.000") + work(arguments(1), "kernel", std::string(900000, 'k')) +
              work("{\"a\": \"" + std::string(3000000, '}') + "\", \"correlation\": 1}") +
              work(arguments(1)));
    std::string out = stacked(text);
    EXPECT_EQ(stacks_in(out), (Rows{"100@1000", "100@1000", "100@1000"}));
    EXPECT_EQ(without(out), text);
}

TEST_F(KinetoGpu, ManyEvents)
{
#ifdef KPT_SLOW_READERS
    const uint64_t count = 20000;
#else
    const uint64_t count = 300000;
#endif
    std::string text;
    for (uint64_t i = 1; i <= count; i++) {
        text += "{\"cat\":\"cuda_runtime\",\"tid\":9,\"ts\":" + number(count - i) +
                ",\"args\":{\"correlation\":" + number(i) + "}},\n";
        text += "{\"cat\":\"kernel\",\"args\":{\"correlation\":" + number(i) + "}},\n";
    }
    text = trace(text);
    std::string out = stacked(text);
    ASSERT_EQ(gpu.work_count, count);
    std::string last = "\"correlation\":" + number(count) + ", \"Python stack\": \"9@0\"}";
    EXPECT_NE(out.rfind(last), std::string::npos);
    size_t found = 0;
    for (size_t at = 0; (at = out.find("Python stack", at)) != std::string::npos; at++)
        found++;
    EXPECT_EQ(found, count);
    uint64_t added = 0;
    for (uint64_t i = 1; i <= count; i++)
        added +=
            std::string(", \"Python stack\": \"9@\"").size() + number((count - i) * 1000).size();
    EXPECT_EQ(out.size(), text.size() + added);
}

/* Fails allocation 1, 2, 3 … until all calls succeed. */
TEST_F(KinetoGpu, WithoutMemoryItIsToldAndNothingIsLost)
{
    std::string text;
    for (uint64_t i = 1; i <= 300; i++)
        text += launch(i, "1.000") + work(arguments(i));
    text += work(arguments(1), "kernel", std::string(900000, 'k'));
    make_file("t.json", trace(text));
    const char *why;
    ASSERT_EQ(kpti_kineto_open(&file, path("t.json").c_str(), &why), 0);
    const uint64_t failures = fail_each_allocation([&](const kpti_heap &heap) {
        kpti_kineto_gpu own = {};
        own.heap = heap;
        const int error = kpti_kineto_gpu_read(&own, &file);
        EXPECT_TRUE(error || own.work_count == 301);
        kpti_kineto_gpu_free(&own);
        EXPECT_TRUE(error == 0 || error == ENOMEM) << error;
        return error ? KPT_E_MEMORY : KPT_OK;
    });
    EXPECT_GE(failures, 4U);
    kpti_kineto_close(&file);
}

} // namespace
