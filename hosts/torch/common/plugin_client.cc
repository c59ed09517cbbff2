#include "hosts/torch/common/plugin_client.h"

#include <dlfcn.h>

namespace kpytrace
{

// The entry calls back with the host's ctx, which belongs to the recording. So the binding that is being opened
// is found through a thread-local variable.
static thread_local PluginClient *opening;

kpt_status PluginClient::register_tracer(void *, kpt_tracer_make_fn make, void *make_ctx)
{
    opening->make_ = make;
    opening->make_ctx_ = make_ctx;
    return KPT_OK;
}

kpt_status PluginClient::register_memory_tracer(void *, kpt_memory_make_fn make, void *make_ctx)
{
    opening->make_memory_ = make;
    opening->make_memory_ctx_ = make_ctx;
    return KPT_OK;
}

kpt_status PluginClient::register_observer(void *, kpt_observer_make_fn make, void *make_ctx)
{
    opening->make_observer_ = make;
    opening->make_observer_ctx_ = make_ctx;
    return KPT_OK;
}

void PluginClient::read_error(const char *what, kpt_last_error_fn last_error, kpt_handle self)
{
    char text[384] = "";
    if (last_error) (void)last_error(self, text, sizeof text, nullptr);
    error_ = std::string(what) + ": " + (text[0] ? text : "the plugin gives no reason");
}

bool PluginClient::open(const std::string &plugin, kpt_host host)
{
    void *library = dlopen(plugin.c_str(), RTLD_NOW | RTLD_LOCAL); // plugins are never closed
    if (!library) {
        error_ = std::string("the plugin can't be loaded: ") + dlerror();
        return false;
    }
    auto entry = reinterpret_cast<kpt_plugin_entry_fn>(dlsym(library, KPT_PLUGIN_ENTRY_NAME));
    if (!entry) {
        error_ = plugin + " is not a plugin: it does not export " KPT_PLUGIN_ENTRY_NAME;
        return false;
    }
    host.register_tracer = register_tracer;
    host.register_memory_tracer = register_memory_tracer;
    host.register_observer = register_observer;
    KPT_INIT(&info_);
    opening = this;
    kpt_status status = entry(&host, &info_);
    opening = nullptr;
    if (status == KPT_OK && make_) return true;
    read_error("the plugin refused this host", info_.last_error, 0);
    return false;
}

bool PluginClient::make(const kpt_tracer_args &args)
{
    KPT_INIT(&tracer_);
    if (make_(make_ctx_, &args, &tracer_) != KPT_OK) {
        tracer_ = {};
        read_error("the plugin can't make a tracer", info_.last_error, info_.self);
        return false;
    }
    if (!records()) read_error("nothing can be recorded", tracer_.ops->last_error, tracer_.self);
    return true;
}

template <typename Object>
bool PluginClient::is_made(kpt_status status, const char *what, Object &out)
{
    if (status == KPT_OK && !(out.flags & KPT_OBJECT_NOOP)) return true;
    if (status != KPT_OK) {
        read_error(what, info_.last_error, info_.self);
    } else {
        read_error(what, out.ops->last_error, out.self);
        (void)out.ops->destroy(out.self);
    }
    out = {};
    return false;
}

bool PluginClient::make_tracebacks(const kpt_tracebacks_args &args, kpt_tracebacks &out)
{
    kpt_traceback_maker maker;
    KPT_INIT(&maker);
    KPT_INIT(&out);
    kpt_status status = info_.get_extension(info_.self, kpt_str_of(KPT_EXT_TRACEBACK), &maker);
    if (status == KPT_OK) status = maker.make(info_.self, &args, &out);
    return is_made(status, "tracebacks can't be gathered", out);
}

bool PluginClient::make_memory(const kpt_memory_args &args, kpt_memory_tracer &out)
{
    const char *what = "memory can't be recorded";
    KPT_INIT(&out);
    if (!make_memory_) return failed("memory can't be recorded: the plugin has no memory tracer");
    return is_made(make_memory_(make_memory_ctx_, &args, &out), what, out);
}

bool PluginClient::make_observer(const kpt_observer_args &args, kpt_observer &out)
{
    const char *what = "operators can't be recorded";
    KPT_INIT(&out);
    if (!make_observer_) return failed("operators can't be recorded: the plugin has no observer");
    return is_made(make_observer_(make_observer_ctx_, &args, &out), what, out);
}

bool PluginClient::failed(const char *why)
{
    error_ = why;
    return false;
}

bool PluginClient::answered(kpt_status status, const char *what, kpt_last_error_fn last_error,
                            kpt_handle self)
{
    if (status == KPT_OK) return true;
    read_error(what, last_error, self);
    return false;
}

bool PluginClient::answered(kpt_status status, const char *what)
{
    return answered(status, what, tracer_.ops->last_error, tracer_.self);
}

bool PluginClient::stop()
{
    kpt_stats stats;
    kpt_status status = tracer_.ops->stop(tracer_.self);
    KPT_INIT(&stats);
    // A tracer that has ended by itself, at exit or in the child of a fork, counts as stopped.
    if (status == KPT_E_STATE && tracer_.ops->get_stats(tracer_.self, &stats) == KPT_OK &&
        stats.state == KPT_STATE_STOPPED)
        return true;
    return answered(status, "tracing can't be stopped");
}

bool PluginClient::restart()
{
    return answered(tracer_.ops->restart(tracer_.self), "tracing can't be restarted");
}

bool PluginClient::record_collections()
{
    return answered(tracer_.ops->register_gc_callback(tracer_.self),
                    "garbage collections can't be recorded");
}

bool PluginClient::deliver(const kpt_delivery &delivery)
{
    return answered(tracer_.ops->get_events(tracer_.self, &delivery),
                    "the recording can't be read");
}

PluginClient::~PluginClient()
{
    if (tracer_.ops) (void)tracer_.ops->destroy(tracer_.self);
    if (info_.self) (void)info_.detach(info_.self);
}

} // namespace kpytrace
