#include "results.h"

namespace kpytrace
{

using torch::profiler::impl::EventType;
using torch::profiler::impl::ExtraFields;
using torch::profiler::impl::PyFrameState;
using torch::profiler::impl::Result;

namespace
{

// A function as torch shows it. The strings are shared by all of its calls.
struct Name {
    kpt_name raw;
    at::StringView display;
    at::StringView file;
    at::StringView function;
};

// A call that is open at the point of the delivery: what its children's caller is.
struct Frame {
    const Name *name;
    uint32_t line;
    bool python;
};

struct Lane {
    kpt_thread raw;
    Thread thread;
    bool wanted;
    std::vector<Frame> open;                       // by depth
    std::unordered_map<uint32_t, uint32_t> before; // how many calls of a name were running already
};

class Builder
{
  public:
    explicit Builder(Recorder &recorder) : recorder_(recorder) {}
    static kpt_status take(void *ctx, const kpt_batch *batch);
    Results results;

  private:
    void add_name(const kpt_name &name);
    void add_thread(const kpt_thread &thread);
    void add(const kpt_activity &activity);
    PyFrameState caller(const Lane &lane, uint32_t depth) const;
    ExtraFields<EventType::PyCall>::args_t python_call(Lane &lane, const kpt_activity &activity,
                                                       const Name &name);
    at::StringView trimmed(std::string path) const;

    Recorder &recorder_;
    std::vector<std::unique_ptr<Name>> names_;
    std::vector<std::unique_ptr<Lane>> lanes_;
    const at::StringView nowhere_{""};
};

std::string text(kpt_str str)
{
    return {str.data, str.size};
}

template <class T> T &place(std::vector<std::unique_ptr<T>> &in, uint32_t index)
{
    if (in.size() <= index) in.resize(index + 1);
    in[index] = std::make_unique<T>();
    return *in[index];
}

at::StringView Builder::trimmed(std::string path) const
{
    for (const std::string &prefix : recorder_.settings().prefixes)
        if (path.starts_with(prefix)) return at::StringView(path.substr(prefix.size()));
    return at::StringView(std::move(path));
}

void Builder::add_name(const kpt_name &name)
{
    Name &added = place(names_, name.index);
    added.raw = name;
    added.display = at::StringView(text(name.display));
    added.file = trimmed(text(name.file));
    added.function = at::StringView(text(name.function));
}

void Builder::add_thread(const kpt_thread &thread)
{
    Lane &added = place(lanes_, thread.index);
    added.raw = thread;
    added.thread = recorder_.threads().of(thread);
    added.wanted = !added.thread.late || recorder_.settings().late_threads;
}

// The nearest Python call below: torch calls the frame that called, also through C.
PyFrameState Builder::caller(const Lane &lane, uint32_t depth) const
{
    while (depth-- > 0) {
        const Frame &frame = lane.open[depth];
        if (frame.python)
            return {static_cast<int>(frame.line), frame.name->file, frame.name->function};
    }
    return {0, nowhere_, nowhere_};
}

ExtraFields<EventType::PyCall>::args_t
Builder::python_call(Lane &lane, const kpt_activity &activity, const Name &name)
{
    ExtraFields<EventType::PyCall>::args_t args{
        {static_cast<int>(activity.line), name.file, name.function}, {}, {}};
    uint64_t answer = 0;
    if (activity.flags & KPT_ACTIVITY_WATCHED)
        answer = activity.value0;
    else if (activity.flags & KPT_ACTIVITY_BEGAN_BEFORE)
        answer =
            recorder_.objects().open_call(lane.raw.os_tid, name.raw, lane.before[activity.name]++);
    if (const Sighting *sighting = recorder_.objects().sighting(answer)) {
        args.module_info_ = sighting->module;
        args.optimizer_info_ = sighting->optimizer;
    }
    return args;
}

void Builder::add(const kpt_activity &activity)
{
    Lane &lane = *lanes_[activity.thread];
    const Name &name = *names_[activity.name];
    const Thread &thread = lane.thread;
    if (!lane.wanted) return;
    lane.open.resize(activity.depth);
    lane.open.push_back({&name, activity.line, activity.kind == KPT_KIND_PYTHON});
    if (activity.kind == KPT_KIND_GC) {
        ExtraFields<EventType::PythonGC> fields{"stop", activity.end_ns - activity.start_ns};
        results.push_back(
            Result::create(activity.start_ns, thread.tid, thread.where, std::move(fields)));
        return;
    }
    auto emplace = [&](auto &&fields) {
        fields.id_ = activity.id;
        results.push_back(
            Result::create(activity.start_ns, thread.tid, thread.where, std::move(fields)));
    };
    if (activity.kind == KPT_KIND_PYTHON)
        emplace(ExtraFields<EventType::PyCall>(activity.end_ns, thread.python_tid,
                                               caller(lane, activity.depth),
                                               python_call(lane, activity, name)));
    else
        emplace(ExtraFields<EventType::PyCCall>(activity.end_ns, thread.python_tid,
                                                caller(lane, activity.depth), name.display));
}

template <class T> const T &at(const T *array, uint32_t stride, uint32_t index)
{
    return *reinterpret_cast<const T *>(reinterpret_cast<const char *>(array) +
                                        size_t{stride} * index);
}

kpt_status Builder::take(void *ctx, const kpt_batch *batch)
{
    auto *self = static_cast<Builder *>(ctx);
    for (uint32_t i = 0; i < batch->name_count; i++)
        self->add_name(at(batch->names, batch->name_stride, i));
    for (uint32_t i = 0; i < batch->thread_count; i++)
        self->add_thread(at(batch->threads, batch->thread_stride, i));
    for (uint32_t i = 0; i < batch->activity_count; i++)
        self->add(at(batch->activities, batch->activity_stride, i));
    return KPT_OK;
}

} // namespace

Results results_of(Recorder &recorder, uint32_t flags)
{
    Builder builder(recorder);
    if (!recorder.bond().deliver(
            recorder.delivery(KPT_ORDER_START, flags, Builder::take, &builder)))
        TORCH_WARN("kpytrace: ", recorder.error());
    return std::move(builder.results);
}

} // namespace kpytrace
