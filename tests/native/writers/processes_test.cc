/* processes_test.cc: several processes in one file, one after the other: each is the same as alone, and no
 * data of one appears in another. */
#include <set>

#include "tests/fixtures/batches/gpu_events.h"
#include "tests/fixtures/batches/writing.h"
#include "tests/fixtures/failing_heap.h"
#include "writers/perfetto/perfetto_wire.h"

namespace
{

class Processes : public Writing
{
  protected:
    /* A file of PARTS processes, each with the same tape and notes. */
    std::string write_parts(const kpti_format &format, uint32_t parts)
    {
        std::string name = std::string("t") + format.suffix;
        kpti_writer *writer = nullptr;
        for (uint32_t i = 0; i < parts; i++) {
            kpti_notes own = {};
            own.heap = options.heap;
            kpti_gpu_log gpu;
            kpt_status status;
            add_notes(own);
            kpti_gpu_log_init(&gpu, &options.heap);
            if (is_rich) add_work(gpu, i);
            if (has_operators) add_launches(gpu);
            std::string label = "rank " + std::to_string(i);
            options.pid = 100 + i;
            options.process_name = {label.data(), label.size()};
            options.process_label = kpt_str_of("a host");
            options.notes = &own;
            options.gpu = &gpu;
            options.shares_file = 1;
            /* The walk borrows the names. */
            parcel walked = tape_of(i, is_rich, has_operators).delivery(KPT_ORDER_TIME, 0);
            kpti_operator_walk walk;
            kpti_operator_walk_init(&walk, &options.heap, nullptr, nullptr);
            status = kpti_operator_walk_add_gpu(&walk, &gpu);
            if (status == KPT_OK) status = kpti_operator_walk_batch(&walk, walked.batch());
            options.operators = &walk;
            if (status == KPT_OK)
                status = writer ? kpti_writer_begin_process(writer, &options)
                                : kpti_writer_open(&format, path(name).c_str(), &options, &writer,
                                                   &result);
            if (status == KPT_OK) {
                parcel p = tape_of(i, is_rich, has_operators).delivery(format.order, 0);
                status = kpti_writer_batch(writer, p.batch());
            }
            if (writer) status = kpti_writer_end_process(writer);
            kpti_operator_walk_free(&walk);
            kpti_notes_free(&own);
            kpti_gpu_log_free(&gpu);
            if (status != KPT_OK) break;
        }
        last = writer ? kpti_writer_close(writer, KPT_OK, nullptr, &result) : KPT_E_MEMORY;
        return last == KPT_OK ? content(name) : "";
    }

    static void add_notes(kpti_notes &own)
    {
        const uint32_t kinds[] = {KPTI_NOTE_MARK, KPTI_NOTE_MARK, KPTI_NOTE_BEGIN};
        for (uint32_t what : kinds) {
            kpti_note n = {};
            n.what = what;
            n.name = kpt_str_of(what == KPTI_NOTE_BEGIN ? "open" : "mark");
            n.flow = what == KPTI_NOTE_MARK ? 7 : 0;
            n.ns = 2000;
            n.os_tid = 999; /* not of a recorded thread */
            (void)kpti_notes_add(&own, &n);
        }
        kpti_note task = {};
        task.what = KPTI_NOTE_TASK;
        task.name = kpt_str_of("Task-1");
        (void)kpti_notes_add(&own, &task);
    }

    /* Adds a call and its kernel, with the same numbers in each process, and a kernel whose stack has
     * PART's own line. */
    static void add_work(kpti_gpu_log &gpu, uint32_t part)
    {
        (void)add_gpu_device(gpu);
        (void)add_gpu(gpu, KPT_GPU_RUNTIME, "launch", 1500, 1600, 5, 4);
        (void)add_gpu(gpu, KPT_GPU_KERNEL, "kernel", 2000, 3000, 5, 4);
        (void)add_gpu(gpu, KPT_GPU_KERNEL, "other", 4000, 5000, 6, 100 + part);
        gpu.counts.dropped = 2;
    }

    /* A launch in the forward operator, and one in its node. */
    static void add_launches(kpti_gpu_log &gpu)
    {
        (void)add_gpu(gpu, KPT_GPU_RUNTIME, "launch", 5200, 5210, 8);
        (void)add_gpu(gpu, KPT_GPU_KERNEL, "forward kernel", 5300, 5400, 8);
        (void)add_gpu(gpu, KPT_GPU_RUNTIME, "launch", 6200, 6210, 9);
        (void)add_gpu(gpu, KPT_GPU_KERNEL, "backward kernel", 6300, 6400, 9);
    }
    static void add_operators(tape &t, uint32_t part)
    {
        const uint32_t step = t.name("step of " + std::to_string(part)), op = t.name("op"),
                       node = t.name("node");
        t.begin_range(0, step, 1, 5000);
        t.enter_operator(0, op, 5100, 8);
        t.leave(0, 5500);
        t.enter_operator(0, node, 6100, 8, tape::host_number(0));
        t.leave(0, 6500);
        t.end_range(0, 1, 7000);
    }

    /* Names have other numbers in each. */
    static tape tape_of(uint32_t part, bool is_rich, bool has_operators)
    {
        tape t;
        if (part % 2) (void)t.name("other");
        const uint32_t shared = t.name("shared of " + std::to_string(part), "/a/file.py", 3);
        t.thread("Main");
        t.enter(0, shared, 1000 + part);
        if (is_rich) {
            t.enter(0, shared, 3000 + part);
            t.point(0, TASK, 3000 + part);
            t.leave(0, 4000 + part);
        }
        if (has_operators) add_operators(t, part);
        t.leave(0, 9000 + part);
        return t;
    }

    enum { TASK = 4 };    /* the number of its note */
    bool is_rich = false; /* with tasks and GPUs */
    bool has_operators = false;
    kpt_status last = KPT_OK;
};

TEST_F(Processes, ChromeHasEachWithItsOwnNumbers)
{
    json trace = read_json(write_parts(kpti_format_chrome, 3));
    std::set<std::string> names, labels, calls, flows, spans, orders;
    for (const json &event : trace["traceEvents"].items) {
        const std::string what = event["name"].text, pid = event["pid"].text,
                          phase = event["ph"].text;
        if (what == "process_name") names.insert(pid + event["args"]["name"].text);
        if (what == "process_labels") labels.insert(pid + event["args"]["labels"].text);
        if (what == "process_sort_index")
            orders.insert(pid + " " + event["args"]["sort_index"].text);
        if (phase == "X") calls.insert(pid + event["name"].text + "@" + event["ts"].text);
        if (phase == "s" || phase == "f") flows.insert(event["id"].text);
        if (phase == "b") spans.insert(event["id"].text);
    }
    EXPECT_EQ(names, (std::set<std::string>{"100rank 0", "101rank 1", "102rank 2"}));
    EXPECT_EQ(labels, (std::set<std::string>{"100a host", "101a host", "102a host"}));
    EXPECT_EQ(orders, (std::set<std::string>{"101 1", "102 2"}));
    EXPECT_EQ(calls, (std::set<std::string>{"100shared of 0@0.500", "101shared of 1@0.501",
                                            "102shared of 2@0.502"}));
    EXPECT_EQ(flows.size(), 3u);
    EXPECT_EQ(spans.size(), 3u);
    EXPECT_EQ(trace["otherData"]["calls"].text, "3");
    EXPECT_EQ(result.activities, 3u);
}

TEST_F(Processes, PerfettoHasEachOnTracksOfItsOwn)
{
    const std::string bytes = write_parts(kpti_format_perfetto, 3);
    perfetto_trace trace(bytes);
    std::set<uint64_t> uuids, flows;
    ASSERT_EQ(trace.calls.size(), 3u);
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_EQ(trace.calls[i].name, "shared of " + std::to_string(i));
        EXPECT_EQ(trace.calls[i].start_ns, 1000 + i);
        EXPECT_EQ(trace.sources["shared of " + std::to_string(i)], "/a/file.py:3");
    }
    size_t tracks = 0;
    for (const wire &packet : wire(bytes).messages(TRACE_PACKET)) {
        if (!packet.has(PACKET_TRACK)) continue;
        tracks++;
        uuids.insert(packet.message(PACKET_TRACK).number(TRACK_UUID));
    }
    EXPECT_EQ(uuids.size(), tracks);
    EXPECT_EQ(tracks, 9u); /* a process, a thread and a loose span each */
    for (const note_seen &mark : trace.marks)
        flows.insert(mark.flows.begin(), mark.flows.end());
    EXPECT_EQ(flows.size(), 3u);
}

/* No task of one process remains when the next begins. */
TEST_F(Processes, EachHasItsTasks)
{
    is_rich = true;
    json trace = read_json(write_parts(kpti_format_chrome, 3));
    std::vector<std::string> resumes;
    for (const json &event : trace["traceEvents"].items)
        if (event.has("cat") && event["cat"].text == "asyncio_task")
            resumes.push_back(event["pid"].text + "@" + event["ts"].text + " " +
                              event["args"]["resume"].text);
    EXPECT_EQ(resumes, (std::vector<std::string>{"100@2.500 1", "101@2.501 1", "102@2.502 1"}));
    size_t slices = 0;
    for (const seen &slice : perfetto_trace(write_parts(kpti_format_perfetto, 3)).calls)
        slices += slice.name == "Task-1";
    EXPECT_EQ(slices, 3u);
}

/* Numbers of devices and arrows are unique to a process; stacks that all processes have are written once. */
TEST_F(Processes, EachHasItsGpus)
{
    is_rich = true;
    json trace = read_json(write_parts(kpti_format_chrome, 3));
    std::set<std::string> devices, arrows, frames;
    size_t ends = 0;
    for (const json &event : trace["traceEvents"].items) {
        const std::string category = event.has("cat") ? event["cat"].text : "";
        if (category == "kernel") {
            devices.insert(event["pid"].text);
            frames.insert(trace["stackFrames"][event["sf"].text]["name"].text);
        }
        if (category == "ac2g") {
            arrows.insert(event["id"].text);
            ends++;
        }
    }
    EXPECT_EQ(devices, (std::set<std::string>{"1000000000", "1000001024", "1000002048"}));
    EXPECT_EQ(arrows.size(), 3u);
    EXPECT_EQ(ends, 6u);
    EXPECT_EQ(frames, (std::set<std::string>{"a.py(4): f", "a.py(100): f", "a.py(101): f",
                                             "a.py(102): f"}));
    EXPECT_EQ(trace["stackFrames"].members.size(), 5u);
    EXPECT_EQ(trace["deviceProperties"].items.size(), 3u);
    EXPECT_EQ(trace["gpu"]["events"].text, "9");
    EXPECT_EQ(trace["gpu"]["events dropped"].text, "6");
}

TEST_F(Processes, PerfettoHasTheGpusOfEach)
{
    is_rich = true;
    const std::string bytes = write_parts(kpti_format_perfetto, 3);
    perfetto_trace trace(bytes);
    std::set<uint64_t> processes, parents;
    size_t kernels = 0;
    for (const seen &slice : trace.calls)
        kernels += slice.name == "kernel";
    EXPECT_EQ(kernels, 3u);
    for (const wire &packet : wire(bytes).messages(TRACE_PACKET)) {
        if (!packet.has(PACKET_TRACK)) continue;
        const wire track = packet.message(PACKET_TRACK);
        if (track.has(TRACK_PROCESS)) processes.insert(track.number(TRACK_UUID));
        if (track.has(TRACK_NAME) && track.text(TRACK_NAME).compare(0, 3, "GPU") == 0)
            parents.insert(track.number(TRACK_PARENT));
    }
    EXPECT_EQ(parents, processes) << "a device is in its process";
}

/* Each has its operators, ranges, arrows and forward functions, and its kernels have the ids of its own operators. */
TEST_F(Processes, EachHasItsOperators)
{
    has_operators = true;
    json trace = read_json(write_parts(kpti_format_chrome, 3));
    std::map<std::string, std::vector<std::string>> arrows;
    std::map<std::string, std::string> forward, ranges, ids;
    for (const json &event : trace["traceEvents"].items) {
        const std::string category = event.has("cat") ? event["cat"].text : "";
        const std::string pid = event["pid"].text, name = event["name"].text;
        if (category == "fwdbwd") arrows[event["id"].text].push_back(pid + event["ph"].text);
        if (name.compare(0, 5, "step ") == 0) ranges[pid] += category + " " + name;
        if (category == "cpu_op" && name == "node") forward[pid] = event["args"]["forward at"].text;
        if (category == "kernel" && name == "backward kernel")
            forward[pid] = event["args"]["forward at"].text;
        if (category == "cpu_op" || category == "kernel")
            ids[pid] += event["args"]["External id"].text + ";";
    }
    ASSERT_EQ(arrows.size(), 3u);
    std::set<std::string> pairs;
    for (const auto &arrow : arrows)
        pairs.insert(arrow.second.at(0) + arrow.second.at(1));
    EXPECT_EQ(pairs, (std::set<std::string>{"100s100f", "101s101f", "102s102f"}));
    for (uint32_t part = 0; part < 3; part++) {
        const std::string pid = std::to_string(100 + part),
                          device = std::to_string(1000000000 + 1024 * part),
                          number = std::to_string(part);
        EXPECT_EQ(forward[pid], "shared of " + number);
        EXPECT_EQ(forward[device], "shared of " + number);
        EXPECT_EQ(ranges[pid], "user_annotation step of " + number);
        EXPECT_EQ(ranges[device], "gpu_user_annotation step of " + number);
        EXPECT_EQ(ids[pid], ids[device]);
    }
}

TEST_F(Processes, PerfettoHasTheOperatorsOfEach)
{
    has_operators = true;
    std::map<uint64_t, std::string> flows;
    std::map<std::string, std::string> ids; /* by "External id" */
    std::multiset<std::string> found;
    for (const note_seen &slice : perfetto_trace(write_parts(kpti_format_perfetto, 3)).slices) {
        const auto id = slice.args.find("External id"), forward = slice.args.find("forward at");
        for (uint64_t flow : slice.flows)
            if (slice.category == "cpu_op") flows[flow] += slice.name + ";";
        if (id != slice.args.end()) ids[id->second] += slice.category + ";";
        if (forward != slice.args.end()) found.insert(slice.category + ": " + forward->second);
        if (slice.category.find("user_annotation") != std::string::npos)
            found.insert(slice.category + ": " + slice.name);
    }
    std::multiset<std::string> expected;
    for (const std::string part : {"0", "1", "2"}) {
        for (const char *category : {"cpu_op", "kernel", "cuda_runtime"})
            expected.insert(std::string(category) + ": shared of " + part);
        for (const char *category : {"user_annotation", "gpu_user_annotation"})
            expected.insert(std::string(category) + ": step of " + part);
    }
    EXPECT_EQ(found, expected);
    EXPECT_EQ(flows.size(), 3u);
    for (const auto &flow : flows)
        EXPECT_EQ(flow.second, "op;node;");
    EXPECT_EQ(ids.size(), 6u);
    for (const auto &id : ids)
        EXPECT_EQ(id.second.substr(0, 7), "cpu_op;") << id.first;
}

TEST_F(Processes, OtherFormatsHaveOne)
{
    EXPECT_TRUE(kpti_format_takes_processes(&kpti_format_chrome));
    EXPECT_TRUE(kpti_format_takes_processes(&kpti_format_perfetto));
    EXPECT_FALSE(kpti_format_takes_processes(&kpti_format_speedscope));
    EXPECT_FALSE(kpti_format_takes_processes(&kpti_format_collapsed));
}

/* Fails allocation 1, 2, 3 … until all calls succeed. */
TEST_F(Processes, NoMemoryAtAnyPointIsToldAndLosesNothing)
{
    is_rich = has_operators = true;
    for (const kpti_format *format : {&kpti_format_chrome, &kpti_format_perfetto}) {
        for (uint64_t nth = 1;; nth++) {
            const FailingHeap failing(nth);
            options.heap = failing.heap();
            (void)write_parts(*format, 3);
            if (!failing.has_failed()) break;
        }
        EXPECT_EQ(last, KPT_OK);
    }
}

} // namespace
