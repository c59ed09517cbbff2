#include "hosts/torch/profiler/tracer.h"

#include <mutex>

#include "hosts/torch/profiler/deferred_results.h"
#include "hosts/torch/profiler/kineto_child.h"
#include "hosts/torch/profiler/torch_results.h"
#include "hosts/torch/profiler/torch_session.h"
#include "hosts/torch/profiler/tracer_state.h"

namespace kpytrace
{

using torch::profiler::impl::RecordQueue;
using torch::profiler::impl::python_tracer::CompressedEvent;
using torch::profiler::impl::python_tracer::PythonTracerBase;

namespace
{

// The recording of the last session. No call is made under the lock.
struct Shared {
    std::mutex lock;
    std::shared_ptr<Recorder> last;
};

Shared &shared()
{
    static Shared *forever = new Shared; // sessions may end after static objects are destroyed
    return *forever;
}

class Tracer final : public PythonTracerBase
{
  public:
    explicit Tracer(std::shared_ptr<Recorder> recorder) : recorder_(std::move(recorder))
    {
        begin_tracing();
        if (!recorder_->records()) {
            TORCH_WARN("kpytrace: Python is not traced: ", recorder_->error());
        }
    }

    ~Tracer() override
    {
        recorder_->end();
        end_tracing();
    }

    void stop() override
    {
        if (recorder_->records()) warn_unless(recorder_->stop());
    }

    void restart() override
    {
        if (recorder_->records()) warn_unless(recorder_->restart());
    }

    void register_gc_callback() override
    {
        if (recorder_->records()) warn_unless(recorder_->client().record_collections());
        collections_ = true;
    }

    Results getEvents(TimeConverter converter, std::vector<CompressedEvent> &,
                      c10::time_t end_time_ns) override
    {
        if (!recorder_->records()) return {};
        recorder_->set_times(converter, end_time_ns);
        Results results;
        Mode mode = recorder_->settings().mode;
        const Wanted wanted = collections_ ? Wanted::MARKED_AND_COLLECTIONS : Wanted::MARKED;
        if (mode == Mode::ALL)
            results = results_of(*recorder_, Wanted::ALL);
        else if (mode == Mode::FULL && can_wait(*recorder_->queue()))
            recorder_->owe(wanted);
        else if (mode == Mode::FULL)
            results = results_of(*recorder_, wanted);
        std::shared_ptr<Recorder> before = recorder_; // freed outside of the lock
        std::lock_guard<std::mutex> guard(shared().lock);
        shared().last.swap(before);
        return results;
    }

  private:
    void warn_unless(bool done) const
    {
        if (!done) {
            TORCH_WARN("kpytrace: ", recorder_->error());
        }
    }

    std::shared_ptr<Recorder> recorder_;
    bool collections_ = false;
};

std::unique_ptr<PythonTracerBase> make(RecordQueue *queue)
{
    return std::make_unique<Tracer>(Recorder::start(installed(), queue));
}

} // namespace

void install(std::shared_ptr<const Settings> settings)
{
    set_installed(std::move(settings));
    torch::profiler::impl::python_tracer::registerTracer(make);
    register_child_profiler();
}

void uninstall(torch::profiler::impl::python_tracer::MakeFn stock)
{
    torch::profiler::impl::python_tracer::registerTracer(stock);
    set_installed(nullptr);
}

std::shared_ptr<Recorder> take_recording()
{
    std::shared_ptr<Recorder> taken;
    std::lock_guard<std::mutex> guard(shared().lock);
    shared().last.swap(taken);
    return taken;
}

} // namespace kpytrace
