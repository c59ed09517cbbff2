#include "hosts/torch/profiler/torch_results.h"

#include <algorithm>

namespace kpytrace
{

using torch::profiler::impl::EventType;
using torch::profiler::impl::ExtraFields;
using torch::profiler::impl::PyFrameState;
using torch::profiler::impl::Result;

namespace
{

// A function as torch shows it. All of its calls share the strings.
struct Name {
    kpt_name raw;
    at::StringView display;
    at::StringView file;
    at::StringView function;
};

// A call that is open at the current point of the delivery, and thus the caller of its children.
struct Frame {
    const Name *name;
    uint32_t line;
    bool python;
};

struct TrackState {
    kpt_thread raw;
    Thread thread;
    bool wanted;
    std::vector<Frame> open; // by depth
};

class Builder
{
  public:
    Builder(Recorder &recorder, Wanted wanted) : recorder_(recorder), wanted_(wanted) {}
    static kpt_status take(void *ctx, const kpt_batch *batch);
    Results results;

  private:
    at::StringView text(std::string_view name) const;
    void add_name(const kpt_name &name);
    void add_thread(const kpt_thread &thread);
    void add(const kpt_activity &activity);
    PyFrameState caller(const TrackState &track_state, const kpt_activity &activity) const;
    void add_python(TrackState &track_state, const kpt_activity &activity, const Name &name);
    void add_c(TrackState &track_state, const kpt_activity &activity, const Name &name);
    void add_collection(const TrackState &track_state, const kpt_activity &activity);

    Recorder &recorder_;
    const Wanted wanted_;
    std::vector<std::unique_ptr<Name>> names_;
    std::vector<std::unique_ptr<TrackState>> track_states_;
    const at::StringView nowhere_{""};
};

// Kineto, if it receives the names, writes them unescaped. A quote would end its string and make the file
// invalid JSON.
at::StringView Builder::text(std::string_view name) const
{
    std::string out(name);
    if (!recorder_.handed_late()) std::replace(out.begin(), out.end(), '"', '\'');
    return at::StringView(out);
}

template <class T> T &place(std::vector<std::unique_ptr<T>> &in, uint32_t index)
{
    if (in.size() <= index) in.resize(index + 1);
    in[index] = std::make_unique<T>();
    return *in[index];
}

void Builder::add_name(const kpt_name &name)
{
    Name &added = place(names_, name.index);
    added.raw = name;
    added.display = text({name.display.data, name.display.size});
    added.file = text(recorder_.view().trimmed({name.file.data, name.file.size}));
    added.function = text({name.function.data, name.function.size});
}

void Builder::add_thread(const kpt_thread &thread)
{
    TrackState &added = place(track_states_, thread.index);
    added.raw = thread;
    added.thread = recorder_.view().threads().of(thread);
    added.wanted = !added.thread.late || recorder_.settings().late_threads;
}

// Returns the nearest Python call around this one, at its current line. torch means the frame that called, also
// through C. For the outermost call this is the call itself.
PyFrameState Builder::caller(const TrackState &track_state, const kpt_activity &activity) const
{
    uint32_t depth = activity.depth;
    uint32_t below = depth;
    while (below > 0 && !track_state.open[below - 1].python)
        below--;
    const Frame &frame = below > 0 ? track_state.open[below - 1] : track_state.open[depth];
    if (!frame.python) return {0, nowhere_, nowhere_};
    uint64_t line = activity.value2 ? activity.value2 : frame.line;
    return {static_cast<int>(line), frame.name->file, frame.name->function};
}

void Builder::add_python(TrackState &track_state, const kpt_activity &activity, const Name &name)
{
    uint32_t line = start_line(activity, name.raw);
    uint64_t answer = activity.flags & KPT_ACTIVITY_WATCHED ? activity.value0 : 0;
    if (activity.flags & KPT_ACTIVITY_BEGAN_BEFORE) {
        uint32_t then = recorder_.view().open_calls().line(track_state.raw.os_tid, activity.depth,
                                                           name.raw.function);
        if (then) line = then;
    }
    // A module begins in line 0, but no call is made from there, and torch 2.15 takes line 0 for "no caller".
    track_state.open.push_back({&name, line ? line : activity.line, true});
    ExtraFields<EventType::PyCall>::args_t args{
        {static_cast<int>(line), name.file, name.function}, {}, {}};
    if (const Sighting *sighting = recorder_.view().objects().sighting(answer)) {
        args.module_info_ = sighting->module;
        args.optimizer_info_ = sighting->optimizer;
        std::string_view cls = args.module_info_ ? args.module_info_->cls_name_.str() : "";
        if (cls.find('"') != std::string_view::npos) args.module_info_->cls_name_ = text(cls);
    }
    ExtraFields<EventType::PyCall> fields(activity.end_ns, track_state.thread.python_tid,
                                          caller(track_state, activity), std::move(args));
    fields.id_ = activity.id;
    results.push_back(Result::create(activity.start_ns, track_state.thread.tid,
                                     track_state.thread.where, std::move(fields)));
}

void Builder::add_c(TrackState &track_state, const kpt_activity &activity, const Name &name)
{
    track_state.open.push_back({&name, 0, false});
    ExtraFields<EventType::PyCCall> fields(activity.end_ns, track_state.thread.python_tid,
                                           caller(track_state, activity), name.display);
    fields.id_ = activity.id;
    results.push_back(Result::create(activity.start_ns, track_state.thread.tid,
                                     track_state.thread.where, std::move(fields)));
}

void Builder::add_collection(const TrackState &track_state, const kpt_activity &activity)
{
    ExtraFields<EventType::PythonGC> fields{"stop", activity.end_ns - activity.start_ns};
    results.push_back(Result::create(activity.start_ns, track_state.thread.tid,
                                     track_state.thread.where, std::move(fields)));
}

void Builder::add(const kpt_activity &activity)
{
    TrackState &track_state = *track_states_[activity.thread];
    const Name &name = *names_[activity.name];
    if (!track_state.wanted) return;
    if (wanted_ == Wanted::MARKED_AND_COLLECTIONS && activity.kind != KPT_KIND_GC &&
        !(activity.flags & (KPT_ACTIVITY_MARKED | KPT_ACTIVITY_WATCHED)))
        return;
    track_state.open.resize(activity.depth);
    if (activity.kind == KPT_KIND_PYTHON)
        add_python(track_state, activity, name);
    else if (activity.kind == KPT_KIND_C)
        add_c(track_state, activity, name);
    else
        add_collection(track_state, activity);
}

kpt_status Builder::take(void *ctx, const kpt_batch *batch)
{
    auto *self = static_cast<Builder *>(ctx);
    for (uint32_t i = 0; i < batch->name_count; i++)
        self->add_name(record_at(batch->names, batch->name_stride, i));
    for (uint32_t i = 0; i < batch->thread_count; i++)
        self->add_thread(record_at(batch->threads, batch->thread_stride, i));
    for (uint32_t i = 0; i < batch->activity_count; i++)
        self->add(record_at(batch->activities, batch->activity_stride, i));
    return KPT_OK;
}

} // namespace

Results results_of(Recorder &recorder, Wanted wanted)
{
    Builder builder(recorder, wanted);
    uint32_t flags = wanted == Wanted::MARKED ? KPT_DELIVER_MARKED : 0;
    if (!recorder.client().deliver(
            recorder.delivery(KPT_ORDER_START, flags, Builder::take, &builder))) {
        TORCH_WARN("kpytrace: ", recorder.error());
    }
    return std::move(builder.results);
}

} // namespace kpytrace
