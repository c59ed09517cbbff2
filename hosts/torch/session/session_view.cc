#include "hosts/torch/session/session_view.h"

#include <c10/util/ApproximateClock.h>

#include <cstdio>
#include <type_traits>
#include <utility>

namespace kpytrace
{

// torch stamps its events with the processor's counter, or with the real-time clock if it cannot use the
// counter. The tracer uses the same clock, so that both nest and one converter serves both.
static constexpr uint32_t tick_source =
    std::is_same_v<c10::approx_time_t, uint64_t> ? KPT_TICKS_COUNTER : KPT_TICKS_REALTIME_NS;

SessionView::SessionView(std::shared_ptr<const Settings> settings,
                         torch::profiler::impl::RecordQueue *queue, bool has_tree)
    : settings_(std::move(settings)), queue_(queue), objects_(has_tree)
{
    for (const std::string &prefix : settings_->prefixes)
        prefixes_.push_back({prefix.data(), prefix.size()});
    for (const Settings::Watched &watched : settings_->watched)
        watches_.push_back({watched.what, watched.code});
}

void SessionView::see_present()
{
    threads_.list_present();
    open_calls_.see();
}

uint64_t SessionView::attach(void *ctx, uint64_t os_tid)
{
    auto *self = static_cast<SessionView *>(ctx);
    return self->threads_.attach(self->queue_, os_tid);
}

uint64_t SessionView::watched(void *ctx, uint64_t watch, void *object, uint64_t)
{
    if (watch == KEPT_CALL) return 0;
    return static_cast<SessionView *>(ctx)->objects_.see(watch, static_cast<PyObject *>(object));
}

void SessionView::log(void *ctx, uint32_t level, kpt_str text)
{
    if (level < KPT_LOG_WARNING || static_cast<SessionView *>(ctx)->is_quiet_) return;
    TORCH_WARN("kpytrace: ", std::string(text.data, text.size));
}

kpt_host SessionView::callbacks()
{
    kpt_host host;
    KPT_INIT(&host);
    host.ctx = this;
    host.name = {"PyTorch Profiler", sizeof "PyTorch Profiler" - 1};
    host.log = log;
    host.tick_source = tick_source;
    host.thread_attach = attach;
    host.on_watched_call = watched;
    return host;
}

kpt_tracer_args SessionView::watches()
{
    kpt_tracer_args args;
    KPT_INIT(&args);
    args.watches = watches_.data();
    args.watch_count = static_cast<uint32_t>(watches_.size());
    args.watch_stride = sizeof(kpt_watch);
    return args;
}

std::string_view SessionView::trimmed(std::string_view path) const
{
    for (const std::string &prefix : settings_->prefixes)
        if (path.starts_with(prefix)) return path.substr(prefix.size());
    return path;
}

// --- for the exporter -----------------------------------------------------------------------------

static uint64_t name_of(void *ctx, uint64_t answer, char *buffer, uint64_t size, uint64_t *number)
{
    const Sighting *sighting = static_cast<SessionView *>(ctx)->objects().sighting(answer);
    if (!sighting || !sighting->module) return 0;
    *number = sighting->module->id_;
    int length = snprintf(buffer, size, "nn.Module: %s_%zu", sighting->module->cls_name_.str(),
                          sighting->module->id_);
    return length > 0 ? static_cast<uint64_t>(length) : 0;
}

static int thread_of(void *ctx, const kpt_thread *thread, uint64_t *python_thread,
                     uint64_t *own_tid)
{
    auto *self = static_cast<SessionView *>(ctx);
    Thread known = self->threads().of(*thread);
    *python_thread = known.python_tid;
    *own_tid = known.tid;
    return !known.late || self->settings().late_threads;
}

static uint32_t open_line(void *ctx, const kpt_thread *thread, const kpt_name *name, uint32_t depth)
{
    return static_cast<SessionView *>(ctx)->open_calls().line(thread->os_tid, depth,
                                                              name->function);
}

kpti_torch_recording SessionView::lent()
{
    kpti_torch_recording lent;
    KPT_INIT(&lent);
    lent.ctx = this;
    lent.name_of = name_of;
    lent.thread_of = thread_of;
    lent.open_line = open_line;
    lent.prefixes = prefixes_.data();
    lent.prefix_count = prefixes_.size();
    return lent;
}

} // namespace kpytrace
