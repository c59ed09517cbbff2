#include "hosts/torch/profiler/kineto_child.h"

#include <libkineto.h>

#include <algorithm>
#include <mutex>

#include "hosts/torch/profiler/tracer_state.h"

namespace kpytrace
{

namespace
{

using libkineto::ActivityType;

// Converts a recording to Kineto's activities, which Kineto owns.
class Activities
{
  public:
    Activities(Recorder &recorder, libkineto::CpuTraceBuffer &out) : recorder_(recorder), out_(out)
    {
    }

    static kpt_status take(void *ctx, const kpt_batch *batch);

  private:
    struct TrackState {
        kpt_thread raw;
        Thread thread;
        bool wanted;
    };

    void add(const kpt_activity &activity);
    std::string name_of(const kpt_activity &activity, const kpt_name &name,
                        const TrackState &track_state, uint64_t *number);

    Recorder &recorder_;
    libkineto::CpuTraceBuffer &out_;
    std::unordered_map<uint32_t, kpt_name> names_;
    std::unordered_map<uint32_t, TrackState> track_states_;
};

std::string Activities::name_of(const kpt_activity &activity, const kpt_name &name,
                                const TrackState &track_state, uint64_t *number)
{
    uint32_t line = start_line(activity, name);
    uint64_t answer = activity.flags & KPT_ACTIVITY_WATCHED ? activity.value0 : 0;
    if (activity.kind != KPT_KIND_PYTHON) return {name.display.data, name.display.size};
    if (activity.flags & KPT_ACTIVITY_BEGAN_BEFORE) {
        uint32_t then = recorder_.view().open_calls().line(track_state.raw.os_tid, activity.depth,
                                                           name.function);
        if (then) line = then;
    }
    const Sighting *sighting = recorder_.view().objects().sighting(answer);
    if (sighting && sighting->module) {
        *number = sighting->module->id_;
        return std::string("nn.Module: ") + sighting->module->cls_name_.str() + "_" +
               std::to_string(*number);
    }
    return std::string(recorder_.view().trimmed({name.file.data, name.file.size})) + "(" +
           std::to_string(line) + "): " + std::string(name.function.data, name.function.size);
}

void Activities::add(const kpt_activity &activity)
{
    TrackState &track_state = track_states_[activity.thread];
    uint64_t number = UINT64_MAX;
    if (!track_state.wanted) return;
    std::string name = name_of(activity, names_[activity.name], track_state, &number);
    std::replace(name.begin(), name.end(), '"', '\''); // Kineto does not escape names
    out_.emplace_activity(out_.span, ActivityType::PYTHON_FUNCTION, name);
    libkineto::GenericTraceActivity &added = *out_.activities.back();
    added.startTime = activity.start_ns;
    added.endTime = activity.end_ns;
    added.device = track_state.thread.where.device;
    added.resource = track_state.thread.where.resource;
    added.threadId = track_state.thread.where.resource;
    if (activity.kind == KPT_KIND_GC) return;
    added.addMetadata("Python id", activity.id);
    if (activity.parent_id)
        added.addMetadata("Python parent id", activity.parent_id);
    else
        added.addMetadata("Python parent id", "null");
    if (number != UINT64_MAX) added.addMetadata("Python module id", number);
}

kpt_status Activities::take(void *ctx, const kpt_batch *batch)
{
    auto *self = static_cast<Activities *>(ctx);
    for (uint32_t i = 0; i < batch->name_count; i++) {
        const kpt_name &name = record_at(batch->names, batch->name_stride, i);
        self->names_[name.index] = name;
    }
    for (uint32_t i = 0; i < batch->thread_count; i++) {
        const kpt_thread &thread = record_at(batch->threads, batch->thread_stride, i);
        Thread known = self->recorder_.view().threads().of(thread);
        bool wanted = !known.late || self->recorder_.settings().late_threads;
        self->track_states_[thread.index] = {thread, known, wanted};
    }
    for (uint32_t i = 0; i < batch->activity_count; i++)
        self->add(record_at(batch->activities, batch->activity_stride, i));
    return KPT_OK;
}

class Session final : public libkineto::IActivityProfilerSession
{
  public:
    explicit Session(std::shared_ptr<const Settings> settings) : settings_(std::move(settings)) {}

    // Runs on Kineto's thread. If torch made a tracer for this trace, that tracer records the calls.
    void start() override
    {
        if (!tracing()) recorder_ = Recorder::start(settings_, nullptr);
    }

    void stop() override
    {
        if (recorder_ && recorder_->records()) (void)recorder_->client().stop();
        if (tracing()) recorder_.reset();
    }

    std::vector<std::string> errors() override
    {
        if (!recorder_ || recorder_->records()) return {};
        return {"kpytrace: Python is not traced: " + recorder_->error()};
    }

    void processTrace(libkineto::ActivityLogger &) override {} // all activities are in the buffer

    std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override
    {
        return nullptr;
    }

    std::vector<libkineto::ResourceInfo> getResourceInfos() override
    {
        return {};
    }

    std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override
    {
        if (!recorder_ || !recorder_->records()) return nullptr;
        auto buffer = std::make_unique<libkineto::CpuTraceBuffer>();
        Activities activities(*recorder_, *buffer);
        (void)recorder_->client().deliver(
            recorder_->delivery(KPT_ORDER_START, 0, Activities::take, &activities));
        buffer->gpuOpCount = 0;
        buffer->span.name = "kpytrace";
        if (!buffer->activities.empty()) {
            buffer->span.startTime = buffer->activities.front()->startTime;
            buffer->span.endTime = buffer->activities.front()->endTime;
        }
        recorder_->end();
        recorder_.reset();
        return buffer;
    }

  private:
    std::shared_ptr<const Settings> settings_;
    std::shared_ptr<Recorder> recorder_;
};

class Child final : public libkineto::IActivityProfiler
{
  public:
    const std::string &name() const override
    {
        return name_;
    }

    const std::set<ActivityType> &availableActivities() const override
    {
        return activities_;
    }

    // torch's own sessions do not request stacks here, since they have a tracer for them.
    std::unique_ptr<libkineto::IActivityProfilerSession>
    configure(const std::set<ActivityType> &, const libkineto::Config &config) override
    {
        auto settings = installed();
        if (!settings || !config.isWithStackEnabled()) return nullptr;
        return std::make_unique<Session>(std::move(settings));
    }

    std::unique_ptr<libkineto::IActivityProfilerSession>
    configure(int64_t, int64_t, const std::set<ActivityType> &types,
              const libkineto::Config &config) override
    {
        return configure(types, config);
    }

  private:
    const std::string name_ = "kpytrace";
    const std::set<ActivityType> activities_ = {ActivityType::PYTHON_FUNCTION};
};

} // namespace

void register_child_profiler()
{
    static std::once_flag once;
    std::call_once(once, [] {
        libkineto::api().registerProfilerFactory([] { return std::make_unique<Child>(); });
    });
}

} // namespace kpytrace
