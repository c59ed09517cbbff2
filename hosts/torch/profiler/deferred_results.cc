#include "hosts/torch/profiler/deferred_results.h"

#include <pybind11/detail/common.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "hosts/torch/profiler/event_tree.h"
#include "hosts/torch/profiler/tensor_numbers.h"
#include "hosts/torch/profiler/torch_results.h"

namespace kpytrace
{

using torch::autograd::profiler::KinetoEvent;
using torch::autograd::profiler::ProfilerResult;
using torch::profiler::impl::EventType;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;
using torch::profiler::impl::RecordQueue;

namespace
{

// A session's configuration is a private member of its queue, and nowhere else: an explicit
// instantiation may name it.
template <ProfilerConfig RecordQueue::*member> struct Reach {
    friend const ProfilerConfig &config_of(RecordQueue &queue)
    {
        return queue.*member;
    }
};
const ProfilerConfig &config_of(RecordQueue &queue);
template struct Reach<&RecordQueue::config_>;

// Events of 2.11 have isPythonFunction() already, but none is one.
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

// What is in an object of torch's _ProfilerResult. This needs no more of pybind11 than how it lays an
// object out, by the header that torch was compiled with.
static ProfilerResult &result_in(PyObject *object)
{
    auto *instance = reinterpret_cast<pybind11::detail::instance *>(object);
    if (std::string_view(Py_TYPE(object)->tp_name) != "torch._C._autograd._ProfilerResult" ||
        !instance->simple_layout || !instance->simple_value_holder[0])
        throw std::invalid_argument("this is no result of torch's profiler");
    return *static_cast<ProfilerResult *>(instance->simple_value_holder[0]);
}

bool lists_calls()
{
    return tells_python<KinetoEvent>;
}

void hand_over(Recorder &recorder, PyObject *object)
{
    ProfilerResult &result = result_in(object);
    std::optional<Wanted> owed = recorder.take_owed();
    if (!owed) return;
    // The result is ours to change: the members are not const, only how torch lends them.
    auto &roots = const_cast<Results &>(result.event_tree());
    auto &events = const_cast<std::vector<KinetoEvent> &>(result.events());
    Results calls = results_of(recorder, *owed);
    number_tensors(add_to_tree(roots, calls));
    const size_t before = events.size();
    for (const auto &call : calls) // 2.11 has no calls there, but garbage collections
        if (lists_calls() || call->tag() == EventType::PythonGC) events.emplace_back(call, false);
    if (events.size() > before)
        std::stable_sort(
            events.begin(), events.end(),
            [](const KinetoEvent &a, const KinetoEvent &b) { return a.startNs() < b.startNs(); });
    recorder.objects().drop_parameters();
}

} // namespace kpytrace
