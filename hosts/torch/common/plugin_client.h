// plugin_client.h: a binding to the plugin: libkpytrace.so, opened through its entry function, with the
// callbacks of one recording. Owns the binding and the tracer that is made through it. Any thread may use it,
// one call at a time.
#ifndef KPTI_HOSTS_TORCH_COMMON_PLUGIN_CLIENT_H
#define KPTI_HOSTS_TORCH_COMMON_PLUGIN_CLIENT_H

#include <string>

#include "abi/kpt.h"

namespace kpytrace
{

class PluginClient
{
  public:
    PluginClient() = default;
    ~PluginClient();
    PluginClient(const PluginClient &) = delete;
    PluginClient &operator=(const PluginClient &) = delete;

    // HOST is the table without the registration functions, which this class sets. Returns false with the
    // reason in error().
    bool open(const std::string &plugin, kpt_host host);

    // Makes the tracer, which then runs. The GIL is held.
    bool make(const kpt_tracer_args &args);

    // Makes a traceback gatherer, which must be destroyed before the binding. A no-op is a failure.
    bool make_tracebacks(const kpt_tracebacks_args &args, kpt_tracebacks &out);

    // Makes a memory tracer, which must be destroyed before the binding. A no-op is a failure.
    bool make_memory(const kpt_memory_args &args, kpt_memory_tracer &out);
    // The same for an observer.
    bool make_observer(const kpt_observer_args &args, kpt_observer &out);

    bool stop();
    bool restart();
    bool record_collections();
    bool deliver(const kpt_delivery &delivery);

    // Returns true if STATUS, of a call on an object of this binding, is KPT_OK. Otherwise error() has WHAT
    // failed and the reason.
    bool answered(kpt_status status, const char *what, kpt_last_error_fn last_error,
                  kpt_handle self);
    // Returns false, with WHY in error().
    bool failed(const char *why);

    // Why the last call failed, or why the tracer records nothing.
    const std::string &error() const
    {
        return error_;
    }
    bool records() const
    {
        return tracer_.ops && !(tracer_.flags & KPT_OBJECT_NOOP);
    }
    const kpt_tracer &tracer() const
    {
        return tracer_;
    }

  private:
    static kpt_status register_tracer(void *ctx, kpt_tracer_make_fn make, void *make_ctx);
    static kpt_status register_memory_tracer(void *ctx, kpt_memory_make_fn make, void *make_ctx);
    static kpt_status register_observer(void *ctx, kpt_observer_make_fn make, void *make_ctx);
    bool answered(kpt_status status, const char *what);
    // Checks the result of a factory. Returns true if the object is not a no-op. A no-op is destroyed.
    template <typename Object> bool is_made(kpt_status status, const char *what, Object &out);
    void read_error(const char *what, kpt_last_error_fn last_error, kpt_handle self);

    kpt_plugin_info info_{};
    kpt_tracer_make_fn make_ = nullptr;
    void *make_ctx_ = nullptr;
    kpt_memory_make_fn make_memory_ = nullptr;
    void *make_memory_ctx_ = nullptr;
    kpt_observer_make_fn make_observer_ = nullptr;
    void *make_observer_ctx_ = nullptr;
    kpt_tracer tracer_{};
    std::string error_;
};

} // namespace kpytrace
#endif
