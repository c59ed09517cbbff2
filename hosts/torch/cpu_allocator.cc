#include "cpu_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <pthread.h>
#include <sched.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>

namespace kpytrace
{
namespace tensors
{

// --- who is told -------------------------------------------------------------------------------

// Read while this thread is counted as inside; written by record_tensors and stop_tensors.
std::atomic<const kpt_memory_tracer *> receiver{nullptr};

// How many threads are inside, in several places that don't share a line of the cache.
struct alignas(64) Counter {
    std::atomic<uint32_t> inside{0};
};
std::array<Counter, 16> counters;

// Of this thread. Nothing here is ever destroyed: blocks are freed until the very end of a thread.
struct Own {
    uint32_t number;    // of its counter; 0: none yet
    bool probes;        // it looks whether an allocation comes to us
    bool reached;       // it does
    uint32_t recording; // that path is of
    uint32_t path_size;
    char path[255]; // of the module whose forward runs
};
thread_local Own own;

std::atomic<uint32_t> recordings{0}; // that have begun

kpt_str path()
{
    const bool is_of_now = own.recording == recordings.load(std::memory_order_relaxed);
    return {own.path, is_of_now ? own.path_size : 0};
}

Counter &counter()
{
    static std::atomic<uint32_t> threads{0};
    if (!own.number) own.number = ++threads | UINT32_C(1) << 31;
    return counters[own.number % counters.size()];
}

// What is cheaply known of a block that is allocated now.
kpt_str category(kpt_str owner)
{
    if (owner.size) return kpt_str_of("forward");
    if (torch::autograd::get_current_node()) return kpt_str_of("backward");
    return {nullptr, 0};
}

void report(uint32_t action, const void *block, size_t size)
{
    if (!receiver.load(std::memory_order_relaxed)) return;
    Counter &count = counter();
    count.inside.fetch_add(1);
    if (const kpt_memory_tracer *to = receiver.load()) {
        kpt_memory_report r;
        KPT_INIT(&r);
        r.action = action;
        r.address = reinterpret_cast<uintptr_t>(block);
        r.size = size;
        r.device_index = -1;
        if (action == KPT_REPORT_ALLOC) {
            r.owner = path();
            r.category = category(r.owner);
        }
        (void)to->ops->report(to->self, &r);
    }
    count.inside.fetch_sub(1, std::memory_order_release);
}

// One call changes who is told, and the allocators, at a time. Blocks are reported without it.
std::mutex control;

// Around a fork. In the child the other threads are gone, and the tracer records no more.
void lock_control()
{
    control.lock();
}

void unlock_control()
{
    control.unlock();
}

void forked()
{
    receiver = nullptr;
    for (Counter &count : counters)
        count.inside = 0;
    control.unlock();
}

// --- the allocators ----------------------------------------------------------------------------

// In front of one allocator, for ever: torch's storages remember who allocated them, and blocks have
// our deleter, which has to know whose it calls by its own address alone.
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
        own.reached |= own.probes;
        // What has a context of its own, or another deleter, is left as it is, and not recorded.
        if (receiver.load(std::memory_order_relaxed) && !own.probes && block.get() &&
            block.get() == block.get_context() &&
            block.compare_exchange_deleter(below_deleter_, deleter_))
            report(KPT_REPORT_ALLOC, block.get(), size);
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
        report(KPT_REPORT_FREE, block, 0);
        below_deleter_(block);
    }

  private:
    c10::Allocator *below_;
    c10::DeleterFnPtr below_deleter_;
    c10::DeleterFnPtr deleter_;
};

constexpr size_t MOST_FRONTS = 8; // allocators that we were ever in front of
std::array<std::atomic<Front *>, MOST_FRONTS> fronts;

template <size_t N> void end_block(void *block)
{
    fronts[N].load(std::memory_order_acquire)->end(block);
}

template <size_t... N>
constexpr std::array<c10::DeleterFnPtr, MOST_FRONTS> deleters_of(std::index_sequence<N...>)
{
    return {end_block<N>...};
}
constexpr auto deleters = deleters_of(std::make_index_sequence<MOST_FRONTS>());

// Ours in front of BELOW, made if need be; null: there are too many.
Front *front_of(c10::Allocator *below)
{
    for (size_t i = 0; i < MOST_FRONTS; i++) {
        Front *front = fronts[i].load();
        if (!front) fronts[i] = front = new Front(below, deleters[i]);
        if (front->below() == below) return front;
    }
    return nullptr;
}

// Makes ALLOCATOR torch's. One that was set with a priority gives way to the same one only.
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

// Whether what is allocated now comes to one of ours. Where somebody else is on top it is tried.
bool is_reached()
{
    if (is_ours(c10::GetCPUAllocator())) return true;
    if (!fronts[0].load()) return false;
    own.probes = true;
    own.reached = false;
    try {
        (void)c10::GetCPUAllocator()->allocate(1);
    } catch (const std::exception &) {
    }
    own.probes = false;
    return own.reached;
}

std::string put_in_front()
{
    if (is_reached()) return "";
    c10::Allocator *below = c10::GetCPUAllocator();
    if (!below->raw_deleter())
        return "torch's CPU allocator is another one, whose blocks can't be followed";
    Front *front = front_of(below);
    if (!front) return "torch's CPU allocator has been changed too often";
    return put(front) ? "" : "torch's CPU allocator can't be changed";
}

// Where one of ours is on top it goes.
void step_back()
{
    c10::Allocator *top = c10::GetCPUAllocator();
    if (is_ours(top)) (void)put(static_cast<const Front *>(top)->below());
}

void stop_locked()
{
    const kpt_memory_tracer *before = receiver.exchange(nullptr);
    if (!before) return;
    step_back();
    for (const Counter &count : counters)
        while (count.inside.load())
            (void)sched_yield();
    delete before;
}

} // namespace tensors

std::string record_tensors(const kpt_memory_tracer &tracer)
{
    static std::once_flag once;
    if (!KPT_HAS(tracer.ops, kpt_memory_ops, report) || !tracer.ops->report)
        return "this plugin takes no reports of memory";
    std::call_once(once, [] {
        (void)pthread_atfork(tensors::lock_control, tensors::unlock_control, tensors::forked);
    });
    std::lock_guard<std::mutex> guard(tensors::control);
    tensors::stop_locked();
    std::string why = tensors::put_in_front();
    tensors::recordings++;
    if (why.empty()) tensors::receiver = new kpt_memory_tracer(tracer);
    return why;
}

void stop_tensors(const kpt_memory_tracer &tracer)
{
    std::lock_guard<std::mutex> guard(tensors::control);
    const kpt_memory_tracer *told = tensors::receiver.load();
    if (told && told->self == tracer.self) tensors::stop_locked();
}

void enter_module(const char *path, size_t size)
{
    tensors::own.recording = tensors::recordings;
    tensors::own.path_size = static_cast<uint32_t>(std::min(size, sizeof tensors::own.path));
    if (size) std::memcpy(tensors::own.path, path, tensors::own.path_size);
}

} // namespace kpytrace
