#include "observer.h"

#include <algorithm>
#include <list>
#include <mutex>

#include "identities.h"
#include "observed.h"

namespace kpytrace
{

namespace
{

// Those that are there, and those that have ended while a callback ran, which the next one frees. Never an
// observer's code under the lock.
struct Observers {
    std::mutex lock;
    int count = 0;
    std::list<std::unique_ptr<Observer>> ended;
};

Observers &observers()
{
    static Observers *forever = new Observers;
    return *forever;
}

} // namespace

Observer::Observer(ObserverSettings settings) : settings_(std::move(settings))
{
    std::lock_guard<std::mutex> guard(observers().lock);
    observers().count++;
}

Observer::~Observer()
{
    if (observer_.ops) (void)observer_.ops->destroy(observer_.self);
    std::lock_guard<std::mutex> guard(observers().lock);
    observers().count--;
}

bool Observer::answered(kpt_status status, const char *what)
{
    return bond_.answered(status, what, observer_.ops->last_error, observer_.self);
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
    return bond_.open(settings_.plugin, host) && bond_.make_observer(args, observer_);
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
    return bond_.failed("operators can't be recorded: too many observers run at once");
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
        return bond_.failed("the plugin is too old to recover an execution trace");
    return answered(observer_.ops->recover(observer_.self, {journal.data(), journal.size()},
                                           {path.data(), path.size()}),
                    "the execution trace can't be recovered");
}

bool Observer::wants_elements_of(kpt_str name) const
{
    const std::string &list = settings_.data_ops;
    const std::string_view wanted(name.data, name.size);
    if (settings_.ranges) return true;
    for (size_t at = 0; at < list.size();) {
        const size_t comma = std::min(list.find(',', at), list.size());
        if (std::string_view(list).substr(at, comma - at) == wanted) return true;
        at = comma + 1;
    }
    return false;
}

void end_observer(std::unique_ptr<Observer> observer)
{
    Observers &all = observers();
    std::list<std::unique_ptr<Observer>> ended;
    end_observing(*observer);
    {
        std::lock_guard<std::mutex> guard(all.lock);
        all.ended.push_back(std::move(observer));
        if (!is_observing()) ended.swap(all.ended);
    }
    ended.clear();
    std::unique_lock<std::mutex> guard(all.lock);
    const bool was_last = all.count == 0;
    guard.unlock();
    if (was_last) forget_all();
}

} // namespace kpytrace
