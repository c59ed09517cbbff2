#include "hosts/torch/execution_trace/observer.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "hosts/torch/execution_trace/record_function_callbacks.h"
#include "hosts/torch/execution_trace/tensor_identity.h"

namespace kpytrace
{

namespace
{

struct Observers {
    std::mutex lock; // no observer is called under it
    std::vector<Observer *> idle;
    size_t in_use = 0;
};

Observers &observers()
{
    static Observers *forever = new Observers;
    return *forever;
}

Observer *take_idle(const ObserverSettings &settings)
{
    Observers &all = observers();
    std::lock_guard<std::mutex> guard(all.lock);
    all.in_use++;
    const auto same = [&settings](const Observer *idle) { return idle->settings() == settings; };
    const auto found = std::find_if(all.idle.begin(), all.idle.end(), same);
    if (found == all.idle.end()) return nullptr;
    Observer *taken = *found;
    all.idle.erase(found);
    return taken;
}

// The identities of tensors are dropped when no observer is in use.
void count_out(Observer *idle)
{
    Observers &all = observers();
    std::unique_lock<std::mutex> guard(all.lock);
    if (idle) all.idle.push_back(idle);
    const bool was_last = --all.in_use == 0;
    guard.unlock();
    if (was_last) forget_all();
}

} // namespace

bool Observer::answered(kpt_status status, const char *what)
{
    return client_.answered(status, what, observer_.ops->last_error, observer_.self);
}

bool Observer::make()
{
    kpt_host host;
    kpt_observer_args args;
    KPT_INIT(&host);
    KPT_INIT(&args);
    host.name = kpt_str_of("torch");
    args.flags = (settings_.stacks ? KPT_OBSERVER_STACKS : 0u) |
                 (settings_.ranges ? KPT_OBSERVER_RANGES : 0u);
    args.data_ops = {settings_.data_ops.data(), settings_.data_ops.size()};
    return client_.open(settings_.plugin, host) && client_.make_observer(args, observer_);
}

bool Observer::open(const std::string &path)
{
    return answered(observer_.ops->open(observer_.self, {path.data(), path.size()}),
                    "the execution trace can't be written");
}

bool Observer::start()
{
    if (!answered(observer_.ops->start(observer_.self), "operators can't be recorded"))
        return false;
    if (begin_observing(*this)) return true;
    (void)observer_.ops->stop(observer_.self);
    return client_.failed("operators can't be recorded: too many observers run at once");
}

bool Observer::stop()
{
    end_observing(*this);
    return answered(observer_.ops->stop(observer_.self), "recording can't be stopped");
}

bool Observer::close()
{
    return answered(observer_.ops->close(observer_.self), "the execution trace can't be written");
}

bool Observer::recover(const std::string &journal, const std::string &path)
{
    if (!KPT_HAS(observer_.ops, kpt_observer_ops, recover))
        return client_.failed("the plugin is too old to recover an execution trace");
    return answered(observer_.ops->recover(observer_.self, {journal.data(), journal.size()},
                                           {path.data(), path.size()}),
                    "the execution trace can't be recovered");
}

Observer *take_observer(ObserverSettings settings, std::string &why)
{
    if (Observer *idle = take_idle(settings)) return idle;
    auto *made = new Observer(std::move(settings));
    if (made->make()) return made;
    why = made->error();
    count_out(nullptr);
    return nullptr;
}

void release_observer(Observer *observer)
{
    (void)observer->stop();
    (void)observer->close();
    count_out(observer);
}

} // namespace kpytrace
