#include "hosts/torch/profiler/tracer_state.h"

#include <atomic>
#include <mutex>

namespace kpytrace
{

namespace
{

struct Installed {
    std::mutex lock; // no call is made under it
    std::shared_ptr<const Settings> settings;
};

Installed &state()
{
    static Installed *forever = new Installed; // sessions may end after static objects are gone
    return *forever;
}

std::atomic<int> tracers{0};

} // namespace

std::shared_ptr<const Settings> installed()
{
    std::lock_guard<std::mutex> guard(state().lock);
    return state().settings;
}

// The old settings are freed by the parameter, after the lock is released.
void set_installed(std::shared_ptr<const Settings> settings)
{
    std::lock_guard<std::mutex> guard(state().lock);
    state().settings.swap(settings);
}

bool tracing()
{
    return tracers > 0;
}

void begin_tracing()
{
    tracers++;
}

void end_tracing()
{
    tracers--;
}

} // namespace kpytrace
