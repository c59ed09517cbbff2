// observer.h: an execution-trace observer of torch: the plugin's, fed with the operators that torch reports. Control
// calls of one observer come one at a time, from any thread, without the GIL.
//
// An observer that is given back is kept for the next user of the same settings, and never freed: a callback may still
// use it, and counting callbacks at every operator, to wait for them, would cost too much.
#ifndef KPTI_HOSTS_TORCH_EXECUTION_TRACE_OBSERVER_H
#define KPTI_HOSTS_TORCH_EXECUTION_TRACE_OBSERVER_H

#include <string>

#include "hosts/torch/common/plugin_client.h"
#include "hosts/torch/execution_trace/plugin_observer.h"

namespace kpytrace
{

class Observer : public PluginObserver
{
  public:
    explicit Observer(ObserverSettings settings) : PluginObserver(std::move(settings)) {}
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

  private:
    bool answered(kpt_status status, const char *what);

    Bond bond_;
};

// One with these settings; null: WHY says why there is none. The GIL is held.
Observer *take_observer(ObserverSettings settings, std::string &why);

// Stops and closes it. Its file is complete, and it is not the caller's any more.
void give_back_observer(Observer *observer);

} // namespace kpytrace
#endif
