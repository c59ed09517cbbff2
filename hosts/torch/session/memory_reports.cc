#include "hosts/torch/session/memory_reports.h"

#include <ATen/record_function.h>
#include <c10/util/ApproximateClock.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <torch/csrc/profiler/orchestration/observer.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "hosts/torch/common/torch_clock.h"

namespace kpytrace
{

using torch::profiler::impl::ActiveProfilerType;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;
using torch::profiler::impl::ProfilerStateBase;

namespace
{

// Counts the forks that led to this process. A state of a parent ignores reports, and does not acquire its lock, which
// another thread of the parent may have held.
std::atomic<uint32_t> memory_forks{0};

// Counts the states that have ended and that a thread still has in its slot.
std::atomic<int> ended_states{0};

uint64_t own_os_tid()
{
    static thread_local const uint64_t tid = static_cast<uint64_t>(syscall(SYS_gettid));
    return tid;
}

ProfilerConfig config_of_memory()
{
    return ProfilerConfig(ProfilerState::NVTX, false, true);
}

} // namespace

// Invariant: `reports_` is written only with the lock held, while `is_open_`.
class MemoryState final : public ProfilerStateBase
{
  public:
    MemoryState() : ProfilerStateBase(config_of_memory())
    {
        static const int hooked =
            pthread_atfork(nullptr, nullptr, [] { memory_forks.fetch_add(1); });
        (void)hooked;
        forks_ = memory_forks;
    }
    MemoryState(const MemoryState &) = delete;
    MemoryState &operator=(const MemoryState &) = delete;
    ~MemoryState() override
    {
        if (!is_open_) ended_states--;
    }

    ActiveProfilerType profilerType() override
    {
        return ActiveProfilerType::NVTX;
    }
    bool memoryProfilingEnabled() const override
    {
        return is_open_ && forks_ == memory_forks;
    }

    void reportMemoryUsage(void *address, int64_t size, size_t allocated, size_t reserved,
                           c10::Device device) override
    {
        add(0, reinterpret_cast<uint64_t>(address), size, allocated, reserved, device);
    }
    void reportOutOfMemory(int64_t size, size_t allocated, size_t reserved,
                           c10::Device device) override
    {
        add(KPTI_TORCH_OUT_OF_MEMORY, 0, size, allocated, reserved, device);
    }

    // Returns the reports, by time.
    std::vector<kpti_torch_memory> end(uint64_t &lost)
    {
        std::vector<kpti_torch_memory> taken;
        if (forks_ != memory_forks) return taken;
        {
            std::lock_guard<std::mutex> guard(state_mutex_);
            if (is_open_.exchange(false)) ended_states++;
            taken.swap(reports_);
            lost = lost_;
        }
        const Clock clock(converter_.makeConverter(), begin_,
                          static_cast<uint64_t>(c10::getApproximateTime()));
        for (kpti_torch_memory &report : taken)
            report.at_ns = clock.ns(static_cast<uint64_t>(report.at_ns));
        std::stable_sort(taken.begin(), taken.end(),
                         [](const auto &a, const auto &b) { return a.at_ns < b.at_ns; });
        return taken;
    }

  private:
    // Any thread, with or without the GIL, perhaps with an allocator's lock held.
    void add(uint32_t flags, uint64_t address, int64_t size, size_t allocated, size_t reserved,
             c10::Device device)
    {
        if (!memoryProfilingEnabled()) return;
        const kpti_torch_memory report{static_cast<int64_t>(c10::getApproximateTime()), // ticks
                                       own_os_tid(),
                                       at::RecordFunction::currentThreadId(),
                                       address,
                                       size,
                                       allocated,
                                       reserved,
                                       static_cast<int32_t>(device.type()),
                                       device.index(),
                                       flags,
                                       0};
        std::lock_guard<std::mutex> guard(state_mutex_);
        if (!is_open_) return;
        try {
            reports_.push_back(report);
        } catch (const std::bad_alloc &) {
            lost_++;
        }
    }

    std::atomic<bool> is_open_{true};
    uint32_t forks_ = 0;
    c10::ApproximateClockToUnixTimeConverter converter_;
    const uint64_t begin_ = static_cast<uint64_t>(c10::getApproximateTime());
    std::vector<kpti_torch_memory> reports_;
    uint64_t lost_ = 0;
};

namespace
{

MemoryState *state_of_thread()
{
    return dynamic_cast<MemoryState *>(ProfilerStateBase::get(false));
}

// Empties the slot of the calling thread. If torch has put something else over it, the state stays there.
void empty_slot()
{
    try {
        (void)ProfilerStateBase::pop(false);
    } catch (const c10::Error &) {
    }
}

} // namespace

bool MemoryReports::drop_ended()
{
    const MemoryState *left = state_of_thread();
    // A profile that began here ended on another thread, or in the parent of a fork.
    if (left && !left->memoryProfilingEnabled()) empty_slot();
    return ended_states > 0;
}

MemoryReports::MemoryReports()
{
    (void)drop_ended();
    if (ProfilerStateBase::get()) return;
    state_ = std::make_shared<MemoryState>();
    std::shared_ptr<ProfilerStateBase> pushed = state_;
    ProfilerStateBase::push(std::move(pushed));
}

void MemoryReports::end()
{
    if (!state_) return;
    reports_ = state_->end(lost_);
    if (state_of_thread() == state_.get()) empty_slot();
    state_.reset();
}

MemoryReports::~MemoryReports()
{
    end();
}

} // namespace kpytrace
