#include "hosts/torch/profiler/session_recording.h"

#include <torch/csrc/utils/pythoncapi_compat.h>

#include <utility>

#include "hosts/torch/profiler/op_marks.h"
#include "hosts/torch/profiler/torch_session.h"

namespace kpytrace
{

Recorder::Recorder(std::shared_ptr<const Settings> settings,
                   torch::profiler::impl::RecordQueue *queue)
    : view_(std::move(settings), queue, true)
{
}

bool Recorder::make()
{
    kpt_tracer_args args = view_.watches();
    // The id is torch's own, and only a preference. If another tool has it, or another of our tracers, as that
    // of KPYTRACE, records under another id, any id records the same.
    args.tool_id = settings().tool_id;
    view_.set_quiet(args.tool_id != 0); // this make may fail
    const bool is_made = client_.make(args);
    view_.set_quiet(false);
    if (is_made || !args.tool_id) return is_made;
    args.tool_id = 0;
    return client_.make(args);
}

std::shared_ptr<Recorder> Recorder::start(std::shared_ptr<const Settings> settings,
                                          torch::profiler::impl::RecordQueue *queue)
{
    std::shared_ptr<Recorder> self(new Recorder(std::move(settings), queue));
    self->begin_ticks_ = static_cast<uint64_t>(c10::getApproximateTime());
    if (!Py_IsInitialized() || Py_IsFinalizing()) return self;
    if (!self->client_.open(self->settings().plugin, self->view_.callbacks())) return self;
    PyGILState_STATE gil = PyGILState_Ensure();
    self->view_.see_present();
    (void)self->make();
    PyGILState_Release(gil);
    self->begin_marks_if_it_records();
    return self;
}

// A recording without a queue does not belong to a profiler with operators.
void Recorder::begin_marks_if_it_records()
{
    if (!queue() || !records()) return;
    // A first point, before any call is recorded. From then on calls have their callers' lines.
    if (settings().mode != Mode::FAST) mark_point(client_.tracer());
    begin_marks(client_.tracer(), settings().mode == Mode::FULL);
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
    view_.end_queue();
    view_.objects().release();
    if (!owed_) view_.objects().drop_parameters();
}

// --- for the exporter -----------------------------------------------------------------------------

const kpti_torch_recording *Recorder::lent()
{
    lent_ = view_.lent();
    uint32_t handed = static_cast<uint32_t>(settings().mode); // the same numbers
    lent_.listed = lists_calls() ? handed : static_cast<uint32_t>(KPTI_TORCH_HANDED_NONE);
    lent_.handed = handed_late_ ? static_cast<uint32_t>(KPTI_TORCH_HANDED_NONE) : handed;
    lent_.tracer = client_.tracer();
    lent_.convert = clock_ ? convert : nullptr;
    lent_.convert_ctx = this;
    lent_.end_ns = end_ns_;
    return &lent_;
}

} // namespace kpytrace
