// observer.h: an execution-trace observer of torch's: the plugin's, fed with the operators that torch
// reports. Control calls of one observer come one at a time, from any thread, without the GIL.
#ifndef KPTI_TORCH_OBSERVER_H
#define KPTI_TORCH_OBSERVER_H

#include <memory>
#include <string>

#include "bond.h"

namespace kpytrace
{

struct ObserverSettings {
    std::string plugin;
    bool stacks = true;
    bool ranges = false;
    std::string data_ops; // names, with commas between them
};

class Observer
{
  public:
    explicit Observer(ObserverSettings settings);
    ~Observer();
    Observer(const Observer &) = delete;
    Observer &operator=(const Observer &) = delete;

    // False: error() says why.
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
    kpt_handle self() const
    {
        return observer_.self;
    }
    const kpt_observer_ops &ops() const
    {
        return *observer_.ops;
    }
    // Whether integral inputs' elements are asked for, of all operators or of NAME.
    bool wants_elements() const
    {
        return settings_.ranges || !settings_.data_ops.empty();
    }
    bool wants_elements_of(kpt_str name) const;

  private:
    bool answered(kpt_status status, const char *what);

    const ObserverSettings settings_;
    kpt_observer observer_{};
    Bond bond_;
};

// The observer ends: it is freed as soon as no callback may be using it.
void end_observer(std::unique_ptr<Observer> observer);

} // namespace kpytrace
#endif
