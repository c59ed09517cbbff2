// observer.h: an execution-trace observer for torch: the plugin's observer, which receives the operators that
// torch reports. Control calls of one observer run one at a time, on any thread, without the GIL.
//
// An observer that its user releases is kept for the next user with the same settings, and never freed. A
// callback may still use it, and counting callbacks at every operator, to wait for them, would cost too much.
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

    // Each returns false with the reason in error().
    bool make();
    bool open(const std::string &path);
    bool start();
    bool stop();
    bool close();
    // Writes PATH from the journal of an observer whose process was killed.
    bool recover(const std::string &journal, const std::string &path);

    const std::string &error() const
    {
        return client_.error();
    }

  private:
    bool answered(kpt_status status, const char *what);

    PluginClient client_;
};

// Returns an observer with these settings, or null with the reason in WHY. The GIL is held.
Observer *take_observer(ObserverSettings settings, std::string &why);

// Stops and closes the observer. Its file is complete, and the caller no longer owns the observer.
void release_observer(Observer *observer);

} // namespace kpytrace
#endif
