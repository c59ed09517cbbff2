#include "hosts/torch/profiler/session_recording.h"

#include <torch/csrc/utils/pythoncapi_compat.h>

#include <cstdio>
#include <utility>

#include "hosts/torch/profiler/op_marks.h"
#include "hosts/torch/profiler/torch_session.h"

namespace kpytrace
{

// torch stamps its events with the processor's counter, or with the real-time clock if it cannot use the
// counter. The tracer uses the same clock, so that both nest and one converter serves both.
static constexpr uint32_t tick_source =
    std::is_same_v<c10::approx_time_t, uint64_t> ? KPT_TICKS_COUNTER : KPT_TICKS_REALTIME_NS;

uint64_t Recorder::attach(void *ctx, uint64_t os_tid)
{
    auto *self = static_cast<Recorder *>(ctx);
    return self->threads_.attach(self->queue_, os_tid);
}

uint64_t Recorder::watched(void *ctx, uint64_t watch, void *object, uint64_t)
{
    if (watch == KEPT_CALL) return 0;
    return static_cast<Recorder *>(ctx)->objects_.see(watch, static_cast<PyObject *>(object));
}

void Recorder::log(void *ctx, uint32_t level, kpt_str text)
{
    if (level < KPT_LOG_WARNING || static_cast<Recorder *>(ctx)->may_be_refused_) return;
    TORCH_WARN("kpytrace: ", std::string(text.data, text.size));
}

Recorder::Recorder(std::shared_ptr<const Settings> settings) : settings_(std::move(settings))
{
    for (const std::string &prefix : settings_->prefixes)
        prefixes_.push_back({prefix.data(), prefix.size()});
}

bool Recorder::make()
{
    kpt_tracer_args args;
    std::vector<kpt_watch> watches;
    for (const Settings::Watched &watched : settings_->watched)
        watches.push_back({watched.what, watched.code});
    KPT_INIT(&args);
    args.watches = watches.data();
    args.watch_count = static_cast<uint32_t>(watches.size());
    args.watch_stride = sizeof(kpt_watch);
    // The id is torch's own, and only a preference. If another tool has it, or another of our tracers, as that
    // of KPYTRACE, records under another id, any id records the same.
    args.tool_id = settings_->tool_id;
    may_be_refused_ = args.tool_id != 0;
    const bool is_made = client_.make(args);
    may_be_refused_ = false;
    if (is_made || !args.tool_id) return is_made;
    args.tool_id = 0;
    return client_.make(args);
}

std::shared_ptr<Recorder> Recorder::start(std::shared_ptr<const Settings> settings,
                                          torch::profiler::impl::RecordQueue *queue)
{
    std::shared_ptr<Recorder> self(new Recorder(std::move(settings)));
    kpt_host host;
    KPT_INIT(&host);
    host.ctx = self.get();
    host.name = {"PyTorch Profiler", sizeof "PyTorch Profiler" - 1};
    host.log = log;
    host.tick_source = tick_source;
    host.thread_attach = attach;
    host.on_watched_call = watched;
    self->queue_ = queue;
    self->begin_ticks_ = static_cast<uint64_t>(c10::getApproximateTime());
    if (!Py_IsInitialized() || Py_IsFinalizing()) return self;
    if (!self->client_.open(self->settings_->plugin, host)) return self;
    PyGILState_STATE gil = PyGILState_Ensure();
    self->threads_.list_present();
    self->open_calls_.see();
    (void)self->make();
    PyGILState_Release(gil);
    self->begin_marks_if_it_records();
    return self;
}

// A recording without a queue does not belong to a profiler with operators.
void Recorder::begin_marks_if_it_records()
{
    if (!queue_ || !records()) return;
    // A first point, before any call is recorded. From then on calls have their callers' lines.
    if (settings_->mode != Mode::FAST) mark_point(client_.tracer());
    begin_marks(client_.tracer(), settings_->mode == Mode::FULL);
}

bool Recorder::stop()
{
    end_marks(client_.tracer());
    return client_.stop();
}

bool Recorder::restart()
{
    if (!client_.restart()) return false;
    begin_marks_if_it_records();
    return true;
}

uint32_t start_line(const kpt_activity &activity, const kpt_name &name)
{
    bool whole_module = std::string_view(name.function.data, name.function.size) == "<module>";
    return whole_module && activity.line == name.first_line ? 0 : activity.line;
}

std::string_view Recorder::trimmed(std::string_view path) const
{
    for (const std::string &prefix : settings_->prefixes)
        if (path.starts_with(prefix)) return path.substr(prefix.size());
    return path;
}

// --- times ----------------------------------------------------------------------------------------

void Recorder::convert(void *ctx, const uint64_t *ticks, int64_t *ns, uint64_t count)
{
    const Clock &clock = *static_cast<Recorder *>(ctx)->clock_;
    for (uint64_t i = 0; i < count; i++)
        ns[i] = clock.ns(ticks[i]);
}

void Recorder::set_times(const TimeConverter &converter, int64_t end_ns)
{
    if (converter)
        clock_.emplace(converter, begin_ticks_, static_cast<uint64_t>(c10::getApproximateTime()));
    end_ns_ = end_ns;
}

kpt_delivery Recorder::delivery(uint32_t order, uint32_t flags, kpt_batch_fn sink, void *sink_ctx)
{
    kpt_delivery delivery;
    KPT_INIT(&delivery);
    delivery.order = order;
    delivery.flags = flags | KPT_DELIVER_PARTS;
    delivery.end_ns = end_ns_;
    if (clock_) {
        delivery.convert = convert;
        delivery.convert_ctx = this;
    }
    delivery.sink = sink;
    delivery.sink_ctx = sink_ctx;
    return delivery;
}

void Recorder::owe(Wanted wanted)
{
    owed_ = wanted;
    handed_late_ = true;
}

std::optional<Wanted> Recorder::take_owed()
{
    return std::exchange(owed_, std::nullopt);
}

void Recorder::end()
{
    if (records()) (void)stop();
    queue_ = nullptr;
    objects_.release();
    if (!owed_) objects_.drop_parameters();
}

// --- for the exporter -----------------------------------------------------------------------------

static uint64_t name_of(void *ctx, uint64_t answer, char *buffer, uint64_t size, uint64_t *number)
{
    const Sighting *sighting = static_cast<Recorder *>(ctx)->objects().sighting(answer);
    if (!sighting || !sighting->module) return 0;
    *number = sighting->module->id_;
    int length = snprintf(buffer, size, "nn.Module: %s_%zu", sighting->module->cls_name_.str(),
                          sighting->module->id_);
    return length > 0 ? static_cast<uint64_t>(length) : 0;
}

static int thread_of(void *ctx, const kpt_thread *thread, uint64_t *python_thread,
                     uint64_t *own_tid)
{
    auto *self = static_cast<Recorder *>(ctx);
    Thread known = self->threads().of(*thread);
    *python_thread = known.python_tid;
    *own_tid = known.tid;
    return !known.late || self->settings().late_threads;
}

static uint32_t open_line(void *ctx, const kpt_thread *thread, const kpt_name *name, uint32_t depth)
{
    return static_cast<Recorder *>(ctx)->open_calls().line(thread->os_tid, depth, name->function);
}

const kpti_torch_recording *Recorder::lent()
{
    KPT_INIT(&lent_);
    uint32_t handed = static_cast<uint32_t>(settings_->mode); // the same numbers
    lent_.listed = lists_calls() ? handed : static_cast<uint32_t>(KPTI_TORCH_HANDED_NONE);
    lent_.handed = handed_late_ ? static_cast<uint32_t>(KPTI_TORCH_HANDED_NONE) : handed;
    lent_.tracer = client_.tracer();
    lent_.convert = clock_ ? convert : nullptr;
    lent_.convert_ctx = this;
    lent_.end_ns = end_ns_;
    lent_.ctx = this;
    lent_.name_of = name_of;
    lent_.thread_of = thread_of;
    lent_.open_line = open_line;
    lent_.prefixes = prefixes_.data();
    lent_.prefix_count = prefixes_.size();
    return &lent_;
}

} // namespace kpytrace
