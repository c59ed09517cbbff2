#include "tensors.h"

#include <algorithm>
#include <map>

namespace kpytrace
{

using torch::profiler::impl::AllocationID;
using torch::profiler::impl::EventType;
using torch::profiler::impl::ExtraFields;
using torch::profiler::impl::TensorID;
using torch::profiler::impl::TensorMetadata;

namespace
{

// An operator's inputs; from torch 2.15 on they are in a struct.
template <class Inputs> const auto &tensors_of(const Inputs &inputs)
{
    if constexpr (requires { inputs.shapes; })
        return inputs.shapes;
    else
        return inputs;
}

class Numbers
{
  public:
    void see(const ExtraFields<EventType::TorchOp> &op)
    {
        for (const auto &input : tensors_of(op.inputs_)) {
            if (auto *tensor = std::get_if<TensorMetadata>(&input)) see(*tensor);
            if (auto *list = std::get_if<std::vector<TensorMetadata>>(&input))
                for (const TensorMetadata &tensor : *list)
                    see(tensor);
        }
    }

    // Memory that is allocated is not what was at its address before.
    void see(const ExtraFields<EventType::Allocation> &allocation)
    {
        Place place{allocation.ptr_, allocation.device_type_};
        if (allocation.alloc_size_ > 0) forget(place);
        learn(place, allocation.id_, allocation.allocation_id_);
        if (allocation.alloc_size_ < 0) forget(place);
    }

    void see(ExtraFields<EventType::PyCall> &call)
    {
        if (call.module_)
            for (auto &parameter : call.module_->parameters_) {
                number(parameter.metadata_);
                if (parameter.grad_metadata_) number(*parameter.grad_metadata_);
            }
        if (call.optimizer_)
            for (auto &parameter : call.optimizer_->parameters_) {
                number(parameter.metadata_);
                if (parameter.grad_metadata_) number(*parameter.grad_metadata_);
                for (auto &state : parameter.state_)
                    number(state.second);
            }
    }

    template <class Other> void see(const Other &) {}

    // What no operator has touched gets numbers that nobody has.
    void end()
    {
        while (!places_.empty())
            forget(places_.begin()->first);
        for (auto &tensors : unknown_)
            give(tensors, TensorID(++largest_), AllocationID(++largest_allocation_));
    }

  private:
    using Place = std::pair<const void *, c10::DeviceType>;
    using Tensors = std::vector<TensorMetadata *>;
    struct Known {
        std::optional<TensorID> id;
        std::optional<AllocationID> allocation;
        Tensors waiting; // seen before the numbers were
    };

    static Place place_of(const TensorMetadata &tensor)
    {
        return {tensor.data_.value_of(), tensor.device_.type()};
    }

    static void give(const Tensors &tensors, TensorID id, AllocationID allocation)
    {
        for (TensorMetadata *tensor : tensors) {
            tensor->id_ = id;
            tensor->allocation_id_ = allocation;
        }
    }

    void see(const TensorMetadata &tensor)
    {
        learn(place_of(tensor), tensor.id_, tensor.allocation_id_);
    }

    void learn(Place place, std::optional<TensorID> id, std::optional<AllocationID> allocation)
    {
        if (!id || !allocation || !place.first) return;
        Known &known = places_[place];
        known.id = id;
        known.allocation = allocation;
        give(known.waiting, *id, *allocation);
        known.waiting.clear();
        largest_ = std::max(largest_, id->value_of());
        largest_allocation_ = std::max(largest_allocation_, allocation->value_of());
    }

    void forget(Place place)
    {
        auto known = places_.find(place);
        if (known == places_.end()) return;
        if (!known->second.waiting.empty()) unknown_.push_back(std::move(known->second.waiting));
        places_.erase(known);
    }

    void number(TensorMetadata &tensor)
    {
        Place place = place_of(tensor);
        if (!place.first) return; // torch numbers no tensor without memory
        Known &known = places_[place];
        if (known.id)
            give({&tensor}, *known.id, *known.allocation);
        else
            known.waiting.push_back(&tensor);
    }

    std::map<Place, Known> places_;
    std::vector<Tensors> unknown_;
    size_t largest_ = 0;
    size_t largest_allocation_ = 0;
};

} // namespace

void number_tensors(const Results &events)
{
    Numbers numbers;
    for (const auto &event : events)
        event->visit([&numbers](auto &fields) { numbers.see(fields); });
    numbers.end();
}

} // namespace kpytrace
