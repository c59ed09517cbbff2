#include "hosts/torch/memory/cpu_allocator.h"

#include <c10/core/CPUAllocator.h>

#include <array>
#include <utility>

#include "hosts/torch/memory/tensor_reports.h"

namespace kpytrace
{
namespace tensors
{

constexpr Place CPU{0, -1, 0};

// Whether this thread probes if an allocation reaches our allocator, and the result.
struct Probe {
    bool runs;
    bool reached;
};
thread_local Probe probe;

// Our allocator in front of another one. It is never freed: torch's storages keep their allocator, and blocks
// have our deleter, which must find the allocator below by the deleter's own address alone.
class Front final : public c10::Allocator
{
  public:
    Front(c10::Allocator *below, c10::DeleterFnPtr deleter)
        : below_(below), below_deleter_(below->raw_deleter()), deleter_(deleter)
    {
    }

    c10::DataPtr allocate(size_t size) override
    {
        c10::DataPtr block = below_->allocate(size);
        probe.reached |= probe.runs;
        // A block with its own context, or with another deleter, is left unchanged and not recorded.
        if (receiver.load(std::memory_order_relaxed) && !probe.runs && block.get() &&
            block.get() == block.get_context() &&
            block.compare_exchange_deleter(below_deleter_, deleter_))
            report(KPT_REPORT_ALLOC, CPU, reinterpret_cast<uintptr_t>(block.get()), size);
        return block;
    }

    c10::DeleterFnPtr raw_deleter() const override
    {
        return below_deleter_ && receiver.load(std::memory_order_relaxed) ? deleter_
                                                                          : below_deleter_;
    }

    bool is_simple_data_ptr(const c10::DataPtr &block) const override
    {
        return below_->is_simple_data_ptr(block);
    }

    void copy_data(void *to, const void *from, std::size_t size) const override
    {
        below_->copy_data(to, from, size);
    }

    c10::Allocator *below() const
    {
        return below_;
    }

    void end(void *block) const
    {
        report(KPT_REPORT_FREE, CPU, reinterpret_cast<uintptr_t>(block), 0);
        below_deleter_(block);
    }

  private:
    c10::Allocator *below_;
    c10::DeleterFnPtr below_deleter_;
    c10::DeleterFnPtr deleter_;
};

constexpr size_t MAX_FRONTS = 8; // allocators that ours was ever in front of
std::array<std::atomic<Front *>, MAX_FRONTS> fronts;

template <size_t N> void end_block(void *block)
{
    fronts[N].load(std::memory_order_acquire)->end(block);
}

template <size_t... N>
constexpr std::array<c10::DeleterFnPtr, MAX_FRONTS> deleters_of(std::index_sequence<N...>)
{
    return {end_block<N>...};
}
constexpr auto deleters = deleters_of(std::make_index_sequence<MAX_FRONTS>());

// Returns our allocator in front of BELOW, and makes it if needed. Returns null if there are too many.
Front *front_of(c10::Allocator *below)
{
    for (size_t i = 0; i < MAX_FRONTS; i++) {
        Front *front = fronts[i].load();
        if (!front) fronts[i] = front = new Front(below, deleters[i]);
        if (front->below() == below) return front;
    }
    return nullptr;
}

// Makes ALLOCATOR torch's allocator. One that was set with a priority is replaced only with the same priority
// or a higher one.
bool put(c10::Allocator *allocator)
{
    for (unsigned priority = 0; priority < 256; priority++) {
        c10::SetCPUAllocator(allocator, static_cast<uint8_t>(priority));
        if (c10::GetCPUAllocator() == allocator) return true;
    }
    return false;
}

bool is_ours(const c10::Allocator *allocator)
{
    for (const auto &front : fronts)
        if (allocator && front.load() == allocator) return true;
    return false;
}

// Returns true if allocations reach one of our allocators. If another allocator is on top, a test allocation
// shows it.
bool is_reached()
{
    if (is_ours(c10::GetCPUAllocator())) return true;
    if (!fronts[0].load()) return false;
    probe.runs = true;
    probe.reached = false;
    try {
        (void)c10::GetCPUAllocator()->allocate(1);
    } catch (const std::exception &) {
    }
    probe.runs = false;
    return probe.reached;
}

std::string put_in_front()
{
    if (is_reached()) return "";
    c10::Allocator *below = c10::GetCPUAllocator();
    if (!below->raw_deleter())
        return "torch's CPU allocator has been replaced by one whose blocks can't be recorded";
    Front *front = front_of(below);
    if (!front) return "torch's CPU allocator has been replaced too often";
    return put(front) ? "" : "torch's CPU allocator can't be replaced";
}

// Removes our allocator if it is on top.
void step_back()
{
    c10::Allocator *top = c10::GetCPUAllocator();
    if (is_ours(top)) (void)put(static_cast<const Front *>(top)->below());
}

} // namespace tensors

std::string record_tensors(const kpt_memory_tracer &tracer)
{
    std::lock_guard<std::mutex> guard(tensors::control);
    tensors::end_locked();
    std::string why = tensors::put_in_front();
    if (why.empty()) why = tensors::begin_locked(tracer);
    if (!why.empty()) tensors::step_back();
    return why;
}

void stop_tensors(const kpt_memory_tracer &tracer)
{
    std::lock_guard<std::mutex> guard(tensors::control);
    const kpt_memory_tracer *receiver = tensors::receiver.load();
    if (!receiver || receiver->self != tracer.self) return;
    tensors::step_back();
    tensors::end_locked();
}

} // namespace kpytrace
