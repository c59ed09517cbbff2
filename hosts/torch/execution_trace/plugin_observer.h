// plugin_observer.h: the plugin's observer and its settings, as the operator callbacks use them. observer.h
// controls it.
#ifndef KPTI_HOSTS_TORCH_EXECUTION_TRACE_PLUGIN_OBSERVER_H
#define KPTI_HOSTS_TORCH_EXECUTION_TRACE_PLUGIN_OBSERVER_H

#include <string>
#include <utility>

#include "abi/kpt.h"

namespace kpytrace
{

struct ObserverSettings {
    std::string plugin;
    bool stacks = true;
    bool ranges = false;
    std::string data_ops; // names, separated by commas

    bool operator==(const ObserverSettings &) const = default;
};

class PluginObserver
{
  public:
    PluginObserver(const PluginObserver &) = delete;
    PluginObserver &operator=(const PluginObserver &) = delete;

    const ObserverSettings &settings() const
    {
        return settings_;
    }
    const kpt_observer &plugins() const
    {
        return observer_;
    }
    // Returns the calling thread's tape, or null.
    kpt_tape *tape() const;
    // Returns true if the elements of NAME's integral inputs are recorded. In the usual case NAME is not read,
    // since its text is on a cache line that an operator does not need otherwise.
    bool wants_elements_of(const kpt_str &name) const
    {
        return may_want_elements_ && (settings_.ranges || is_listed(name));
    }

  protected:
    explicit PluginObserver(ObserverSettings settings) : settings_(std::move(settings)) {}
    ~PluginObserver() = default;

    const ObserverSettings settings_;
    const bool may_want_elements_ = settings_.ranges || !settings_.data_ops.empty();
    kpt_observer observer_{};

  private:
    bool is_listed(const kpt_str &name) const;
};

} // namespace kpytrace
#endif
