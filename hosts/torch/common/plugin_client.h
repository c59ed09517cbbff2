// plugin_client.h: a bond with the plugin: libkpytrace.so, opened through its one door, with the callbacks of
// one recording. Owns the bond and the tracer that is made through it; any thread may use it, one
// call at a time.
#ifndef KPTI_HOSTS_TORCH_COMMON_PLUGIN_CLIENT_H
#define KPTI_HOSTS_TORCH_COMMON_PLUGIN_CLIENT_H

#include <string>

#include "abi/kpt.h"

namespace kpytrace
{

class Bond
{
  public:
    Bond() = default;
    ~Bond();
    Bond(const Bond &) = delete;
    Bond &operator=(const Bond &) = delete;

    // HOST's table without the registration, which is ours. False: error() says why.
    bool open(const std::string &plugin, kpt_host host);

    // Makes the tracer, which then runs. The GIL is held.
    bool make(const kpt_tracer_args &args);

    // Makes an object that gathers, which must be destroyed before the bond is. A no-op is a failure.
    bool make_tracebacks(const kpt_tracebacks_args &args, kpt_tracebacks &out);

    // Makes a memory tracer, which must be destroyed before the bond is. A no-op is a failure.
    bool make_memory(const kpt_memory_args &args, kpt_memory_tracer &out);
    // The same for an observer.
    bool make_observer(const kpt_observer_args &args, kpt_observer &out);

    bool stop();
    bool restart();
    bool record_collections();
    bool deliver(const kpt_delivery &delivery);

    // Whether STATUS, of an object that was made through this bond, is good. False: error() says WHAT
    // failed, and why.
    bool answered(kpt_status status, const char *what, kpt_last_error_fn last_error,
                  kpt_handle self);
    // False, with WHY for an error.
    bool failed(const char *why);

    // Why the last call failed; of a tracer that records nothing, why.
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
    // What a factory answered, and made: whether that does anything. If not, it is destroyed.
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
