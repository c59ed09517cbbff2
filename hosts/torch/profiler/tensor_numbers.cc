#include "hosts/torch/profiler/tensor_numbers.h"

#include <algorithm>
#include <map>
#include <set>

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
template <class Inputs> auto &tensors_of(Inputs &inputs)
{
    if constexpr (requires { inputs.shapes; })
        return inputs.shapes;
    else
        return inputs;
}

// A tensor of an operator, of a module or of an optimizer, or a report of the allocator, which has no
// TENSOR. The two numbers are fields of the event.
struct Use {
    const void *tensor;
    std::pair<const void *, c10::Device> memory;
    bool frees;
    std::optional<AllocationID> *allocation;
    std::optional<TensorID> *id;
};

// All uses in the order of the events.
class Uses
{
  public:
    std::vector<Use> found;

    void see(ExtraFields<EventType::TorchOp> &op)
    {
        for (auto &input : tensors_of(op.inputs_)) {
            if (auto *tensor = std::get_if<TensorMetadata>(&input)) add(*tensor);
            if (auto *list = std::get_if<std::vector<TensorMetadata>>(&input))
                for (TensorMetadata &tensor : *list)
                    add(tensor);
        }
    }

    void see(ExtraFields<EventType::Allocation> &allocation)
    {
        found.push_back({nullptr,
                         {allocation.ptr_, allocation.device()},
                         allocation.alloc_size_ < 0,
                         &allocation.allocation_id_,
                         &allocation.id_});
    }

    // Every call of a module or an optimizer has the snapshot that was taken at its first call. At a later call
    // its addresses may be those of other tensors, so the tensors of later calls get no numbers.
    void see(ExtraFields<EventType::PyCall> &call)
    {
        if (call.module_ && modules_.insert(call.module_->self_.value_of()).second)
            for (auto &parameter : call.module_->parameters_)
                add_parameter(parameter);
        if (call.optimizer_ && optimizers_.insert(call.optimizer_->self_.value_of()).second)
            for (auto &parameter : call.optimizer_->parameters_) {
                add_parameter(parameter);
                for (auto &state : parameter.state_)
                    add(state.second);
            }
    }

    template <class Other> void see(Other &) {}

  private:
    void add(TensorMetadata &tensor)
    {
        found.push_back({tensor.impl().value_of(),
                         {tensor.data_.value_of(), tensor.device_},
                         false,
                         &tensor.allocation_id_,
                         &tensor.id_});
    }

    template <class Parameter> void add_parameter(Parameter &parameter)
    {
        add(parameter.metadata_);
        if (parameter.grad_metadata_) add(*parameter.grad_metadata_);
    }

    std::set<const void *> modules_;
    std::set<const void *> optimizers_;
};

struct ByMemory {
    using Memory = std::pair<const void *, c10::Device>;
    static auto key(const Memory &memory)
    {
        return std::make_tuple(memory.first, memory.second.type(), memory.second.index());
    }
    bool operator()(const Memory &a, const Memory &b) const
    {
        return key(a) < key(b);
    }
};

// The memory at an address is one allocation until it is freed.
void number_allocations(const std::vector<Use> &uses)
{
    std::map<ByMemory::Memory, size_t, ByMemory> live;
    size_t next = 1;
    for (const Use &use : uses) {
        auto [at, fresh] = live.try_emplace(use.memory, next);
        next += fresh;
        *use.allocation = AllocationID(at->second);
        if (use.frees) live.erase(at);
    }
}

// Groups the allocations that one tensor used one after the other, and returns the group of each. An allocation
// that no tensor used is in no group.
std::map<size_t, size_t> group_allocations(const std::vector<Use> &uses)
{
    std::map<const void *, size_t> first_of; // by tensor
    std::set<std::pair<size_t, size_t>> pairs;
    for (const Use &use : uses) {
        if (!use.tensor) continue;
        size_t allocation = (*use.allocation)->value_of();
        size_t first = first_of.try_emplace(use.tensor, allocation).first->second;
        pairs.insert(std::minmax(first, allocation));
    }
    std::map<size_t, size_t> groups;
    size_t next = 0;
    for (const auto &[one, other] : pairs) {
        auto [at, fresh] = groups.try_emplace(one, next);
        next += fresh;
        groups.try_emplace(other, at->second);
    }
    return groups;
}

} // namespace

void number_tensors(const Results &events)
{
    Uses uses;
    for (const auto &event : events)
        event->visit([&uses](auto &fields) { uses.see(fields); });
    number_allocations(uses.found);
    std::map<size_t, size_t> groups = group_allocations(uses.found);
    for (const Use &use : uses.found) {
        auto group = groups.find((*use.allocation)->value_of());
        if (group != groups.end()) *use.id = TensorID(group->second);
    }
}

} // namespace kpytrace
