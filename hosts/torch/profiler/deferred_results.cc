#include "hosts/torch/profiler/deferred_results.h"

#include <pybind11/detail/common.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "hosts/torch/profiler/event_tree.h"
#include "hosts/torch/profiler/tensor_numbers.h"
#include "hosts/torch/profiler/torch_results.h"
#include "hosts/torch/profiler/torch_session.h"

namespace kpytrace
{

using torch::autograd::profiler::KinetoEvent;
using torch::autograd::profiler::ProfilerResult;
using torch::profiler::impl::EventType;

// Returns the C++ object in an object of torch's _ProfilerResult. This needs from pybind11 only the layout of
// an object, from the header that torch was compiled with.
static ProfilerResult &result_in(PyObject *object)
{
    auto *instance = reinterpret_cast<pybind11::detail::instance *>(object);
    if (std::string_view(Py_TYPE(object)->tp_name) != "torch._C._autograd._ProfilerResult" ||
        !instance->simple_layout || !instance->simple_value_holder[0])
        throw std::invalid_argument("expected a result of torch's profiler");
    return *static_cast<ProfilerResult *>(instance->simple_value_holder[0]);
}

void hand_over(Recorder &recorder, PyObject *object)
{
    ProfilerResult &result = result_in(object);
    std::optional<Wanted> owed = recorder.take_owed();
    if (!owed) return;
    // The result may be changed: the members are not const, only torch's accessors return them as const.
    auto &roots = const_cast<Results &>(result.event_tree());
    auto &events = const_cast<std::vector<KinetoEvent> &>(result.events());
    Results calls = results_of(recorder, *owed);
    number_tensors(add_to_tree(roots, calls));
    const size_t before = events.size();
    for (const auto &call : calls) // torch 2.11 has no calls there, but garbage collections
        if (lists_calls() || call->tag() == EventType::PythonGC) events.emplace_back(call, false);
    if (events.size() > before)
        std::stable_sort(
            events.begin(), events.end(),
            [](const KinetoEvent &a, const KinetoEvent &b) { return a.startNs() < b.startNs(); });
    recorder.view().objects().drop_parameters();
}

} // namespace kpytrace
