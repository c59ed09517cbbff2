#include "hosts/torch/profiler/torch_session.h"

#include <torch/csrc/autograd/profiler_kineto.h>

namespace kpytrace
{

using torch::autograd::profiler::KinetoEvent;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;
using torch::profiler::impl::RecordQueue;

namespace
{

// A session's configuration is only in a private member of its queue. An explicit instantiation may name a
// private member.
template <ProfilerConfig RecordQueue::*member> struct Reach {
    friend const ProfilerConfig &config_of(RecordQueue &queue)
    {
        return queue.*member;
    }
};
const ProfilerConfig &config_of(RecordQueue &queue);
template struct Reach<&RecordQueue::config_>;

// KinetoEvent of torch 2.11 has isPythonFunction(), but no event there is a Python call.
template <class Event> constexpr bool tells_python = requires(const Event &event)
{
    event.pythonId();
};

} // namespace

bool can_wait(RecordQueue &queue)
{
    const ProfilerConfig &config = config_of(queue);
    return config.state != ProfilerState::KINETO_ONDEMAND && !config.experimental_config.verbose;
}

bool lists_calls()
{
    return tells_python<KinetoEvent>;
}

} // namespace kpytrace
