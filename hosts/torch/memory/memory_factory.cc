#include "hosts/torch/memory/memory_factory.h"

#include <c10/util/Exception.h>

#include <memory>
#include <mutex>

#include "hosts/torch/common/plugin_client.h"
#include "hosts/torch/memory/cpu_allocator.h"

namespace kpytrace
{
namespace memory_factory
{

using torch::profiler::impl::python_tracer::PythonMemoryTracerBase;

struct Shared {
    std::mutex lock;
    std::string plugin;
};

Shared &shared()
{
    static Shared *forever = new Shared; // a snapshot may begin after static objects are destroyed
    return *forever;
}

// A failure is reported once, and then nothing is written, since torch takes no return value.
class MemoryTracer final : public PythonMemoryTracerBase
{
  public:
    explicit MemoryTracer(std::string plugin) : plugin_(std::move(plugin)) {}

    ~MemoryTracer() override
    {
        end();
        if (tracer_.ops) (void)tracer_.ops->destroy(tracer_.self);
    }

    void start() override
    {
        kpt_host host;
        kpt_memory_args args;
        KPT_INIT(&host);
        KPT_INIT(&args);
        host.name = kpt_str_of("torch");
        if (tracer_.ops == nullptr &&
            !(client_.open(plugin_, host) && client_.make_memory(args, tracer_))) {
            TORCH_WARN("kpytrace: ", client_.error());
            return;
        }
        started_ = said(tracer_.ops->start(tracer_.self));
        if (!started_) return;
        const std::string why = record_tensors(tracer_);
        if (!why.empty()) {
            TORCH_WARN("kpytrace: tensors are not in the snapshot: ", why);
        }
    }

    void stop() override
    {
        end();
    }

    void export_memory_history(const std::string &path) override
    {
        if (started_)
            (void)said(
                tracer_.ops->export_memory_history(tracer_.self, {path.data(), path.size()}));
    }

  private:
    void end()
    {
        if (!started_) return;
        stop_tensors(tracer_);
        (void)tracer_.ops->stop(tracer_.self);
    }

    bool said(kpt_status status) const
    {
        char text[256] = "";
        if (status == KPT_OK) return true;
        (void)tracer_.ops->last_error(tracer_.self, text, sizeof text, nullptr);
        TORCH_WARN("kpytrace: the memory snapshot is not recorded: ", text);
        return false;
    }

    std::string plugin_;
    PluginClient client_;
    kpt_memory_tracer tracer_{};
    bool started_ = false;
};

std::unique_ptr<PythonMemoryTracerBase> make_memory()
{
    std::lock_guard<std::mutex> guard(shared().lock);
    return std::make_unique<MemoryTracer>(shared().plugin);
}

} // namespace memory_factory

void install_memory_factory(const std::string &plugin)
{
    {
        std::lock_guard<std::mutex> guard(memory_factory::shared().lock);
        memory_factory::shared().plugin = plugin;
    }
    torch::profiler::impl::python_tracer::registerMemoryTracer(memory_factory::make_memory);
}

void uninstall_memory_factory(torch::profiler::impl::python_tracer::MakeMemoryFn stock)
{
    torch::profiler::impl::python_tracer::registerMemoryTracer(stock);
}

} // namespace kpytrace
