// observer.h: an execution-trace observer of torch's: the plugin's, fed with the operators that torch
// reports. Control calls of one observer come one at a time, from any thread, without the GIL.
//
// One that is given back is kept for the next who wants the same, and never freed: a callback may still be
// at it, and would have to be counted, at each operator, for somebody to wait for it.
#ifndef KPTI_HOSTS_TORCH_EXECUTION_TRACE_OBSERVER_H
#define KPTI_HOSTS_TORCH_EXECUTION_TRACE_OBSERVER_H

#include <string>

#include "hosts/torch/plugin_client.h"

namespace kpytrace
{

struct ObserverSettings {
    std::string plugin;
    bool stacks = true;
    bool ranges = false;
    std::string data_ops; // names, with commas between them

    bool operator==(const ObserverSettings &) const = default;
};

class Observer
{
  public:
    explicit Observer(ObserverSettings settings) : settings_(std::move(settings)) {}
    ~Observer() = delete;
    Observer(const Observer &) = delete;
    Observer &operator=(const Observer &) = delete;

    // Each: false, and error() says why.
    bool make();
    bool open(const std::string &path);
    bool start();
    bool stop();
    bool close();
    // Makes PATH of what an observer left behind whose process was killed.
    bool recover(const std::string &journal, const std::string &path);

    const std::string &error() const
    {
        return bond_.error();
    }
    const ObserverSettings &settings() const
    {
        return settings_;
    }
    const kpt_observer &plugins() const
    {
        return observer_;
    }
    // The calling thread's; null: there is none.
    kpt_tape *tape() const;
    // Whether the elements of NAME's integral inputs are asked for. Mostly nobody looks at NAME: where it lies is a
    // line of the cache that nothing else of an operator needs.
    bool wants_elements_of(const kpt_str &name) const
    {
        return may_want_elements_ && (settings_.ranges || is_listed(name));
    }

  private:
    bool is_listed(const kpt_str &name) const;
    bool answered(kpt_status status, const char *what);

    const ObserverSettings settings_;
    const bool may_want_elements_ = settings_.ranges || !settings_.data_ops.empty();
    kpt_observer observer_{};
    Bond bond_;
};

// One with these settings; null: WHY says why there is none. The GIL is held.
Observer *take_observer(ObserverSettings settings, std::string &why);

// Stops and closes it. Its file is complete, and it is not the caller's any more.
void give_back_observer(Observer *observer);

} // namespace kpytrace
#endif
