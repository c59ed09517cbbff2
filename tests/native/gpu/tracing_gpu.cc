#include "tests/native/gpu/tracing_gpu.h"

#include <atomic>
#include <ctime>
#include <utility>

static std::atomic<int64_t> out;
static thread_local uint32_t line;
static std::function<void()> releasing;

void set_python_line(uint32_t number)
{
    line = number;
}

int64_t tracebacks_out()
{
    return out;
}

void at_release(std::function<void()> call)
{
    releasing = std::move(call);
}

static kpt_status gather(kpt_handle, uint32_t what, uint32_t, kpt_traceback *traceback)
{
    *traceback = kpt_traceback{};
    EXPECT_EQ(what, (uint32_t)KPT_GATHER_PYTHON);
    traceback->python = line;
    if (line) out++;
    return KPT_OK;
}

static kpt_status release(kpt_handle, kpt_traceback *tracebacks, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (tracebacks[i].python) out--;
        if (releasing) std::exchange(releasing, nullptr)();
        tracebacks[i] = kpt_traceback{};
    }
    return KPT_OK;
}

FakeTracebacks::FakeTracebacks()
{
    static kpt_tracebacks_ops ops;
    KPT_INIT(&ops);
    ops.gather = gather;
    ops.release = release;
    KPT_INIT(&object);
    object.ops = &ops;
    object.self = 1;
}

int64_t unix_now()
{
    timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

TracingGpu::TracingGpu()
{
    const char *why = nullptr;
    mock_host_init(&host, "gpu test");
    KPT_INIT(&info);
    KPT_INIT(&maker);
    KPT_INIT(&args);
    KPT_INIT(&tracer);
    kpt_plugin_entry_fn entry = mock_open_plugin(KPT_PLUGIN_PATH, &why);
    EXPECT_NE(entry, nullptr) << why;
    EXPECT_EQ(entry(&host.table, &info), KPT_OK);
    EXPECT_EQ(info.get_extension(info.self, kpt_str_of(KPT_EXT_GPU), &maker), KPT_OK);
    args.tracebacks = &tracebacks.object;
}

TracingGpu::~TracingGpu()
{
    if (tracer.self) {
        EXPECT_EQ(destroy(), KPT_OK);
    }
    EXPECT_EQ(info.detach(info.self), KPT_OK);
    EXPECT_EQ(host.live_blocks, 0u);
    EXPECT_EQ(host.bad_frees, 0u);
}

kpt_status TracingGpu::make()
{
    KPT_INIT(&tracer);
    return maker.make(info.self, &args, &tracer);
}

kpt_status TracingGpu::start()
{
    return tracer.ops->start(tracer.self);
}

kpt_status TracingGpu::stop()
{
    return tracer.ops->stop(tracer.self);
}

kpt_status TracingGpu::collect()
{
    return tracer.ops->collect(tracer.self, take, this);
}

kpt_status TracingGpu::destroy()
{
    const kpt_status status = tracer.ops->destroy(tracer.self);
    tracer.self = 0;
    return status;
}

std::string TracingGpu::error()
{
    char text[512] = "";
    (void)tracer.ops->last_error(tracer.self, text, sizeof text, nullptr);
    return text;
}

kpt_gpu_stats TracingGpu::stats()
{
    kpt_gpu_stats stats;
    KPT_INIT(&stats);
    EXPECT_EQ(tracer.ops->get_stats(tracer.self, &stats), KPT_OK);
    return stats;
}

static std::string text_of(kpt_str text)
{
    return text.size ? std::string(text.data, text.size) : std::string();
}

kpt_status TracingGpu::take(void *self, const kpt_gpu_batch *batch)
{
    auto *test = static_cast<TracingGpu *>(self);
    EXPECT_GE(batch->event_stride, KPT_GPU_EVENT_V1_SIZE);
    for (uint64_t i = 0; i < batch->event_count; i++) {
        Event event;
        static_cast<kpt_gpu_event &>(event) = batch->events[i];
        event.text = text_of(event.name);
        test->events.push_back(event);
    }
    test->devices.clear();
    for (uint32_t i = 0; i < batch->device_count; i++)
        test->devices.push_back(text_of(batch->devices[i].name));
    for (uint32_t i = 0; i < batch->name_count; i++)
        test->names[{batch->names[i].what, batch->names[i].id}] = text_of(batch->names[i].name);
    test->sink_calls++;
    return test->in_sink ? test->in_sink() : KPT_OK;
}

std::vector<Event> TracingGpu::of_kind(uint16_t kind) const
{
    std::vector<Event> found;
    for (const Event &event : events)
        if (event.kind == kind) found.push_back(event);
    return found;
}
