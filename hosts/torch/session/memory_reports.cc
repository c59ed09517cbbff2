#include "hosts/torch/session/memory_reports.h"

#include <ATen/record_function.h>
#include <c10/util/ApproximateClock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include "hosts/torch/common/torch_clock.h"

namespace kpytrace
{

namespace
{

uint64_t own_os_tid()
{
    static thread_local const uint64_t tid = static_cast<uint64_t>(syscall(SYS_gettid));
    return tid;
}

} // namespace

// Invariant: `reports_` is written only with the lock held, while it runs.
class MemoryState final : public ThreadState
{
  public:
    explicit MemoryState(bool wants_inputs) : ThreadState(true, wants_inputs) {}

    void reportMemoryUsage(void *address, int64_t size, size_t allocated, size_t reserved,
                           c10::Device device) override
    {
        add(0, reinterpret_cast<uint64_t>(address), size, allocated, reserved, device);
        ThreadState::reportMemoryUsage(address, size, allocated, reserved, device);
    }
    void reportOutOfMemory(int64_t size, size_t allocated, size_t reserved,
                           c10::Device device) override
    {
        add(KPTI_TORCH_OUT_OF_MEMORY, 0, size, allocated, reserved, device);
        ThreadState::reportOutOfMemory(size, allocated, reserved, device);
    }

    // Returns the reports, by time.
    std::vector<kpti_torch_memory> end(uint64_t &lost)
    {
        std::vector<kpti_torch_memory> taken;
        if (!is_running()) return taken;
        {
            std::lock_guard<std::mutex> guard(state_mutex_);
            close();
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
        if (!is_running()) return;
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
        if (!is_running()) return;
        try {
            reports_.push_back(report);
        } catch (const std::bad_alloc &) {
            lost_++;
        }
    }

    c10::ApproximateClockToUnixTimeConverter converter_;
    const uint64_t begin_ = static_cast<uint64_t>(c10::getApproximateTime());
    std::vector<kpti_torch_memory> reports_;
    uint64_t lost_ = 0;
};

MemoryReports::MemoryReports(bool memory, bool inputs)
{
    std::shared_ptr<MemoryState> receiving =
        memory ? std::make_shared<MemoryState>(inputs) : nullptr;
    state_ = memory ? receiving : std::make_shared<ThreadState>(false, inputs);
    is_marked_ = ThreadState::push(state_);
    if (is_marked_) memory_ = std::move(receiving);
}

void MemoryReports::mark_again()
{
    if (state_ && !memory_ && !ThreadState::last()) (void)ThreadState::push(state_);
}

void MemoryReports::end()
{
    if (!state_) return;
    if (memory_) reports_ = memory_->end(lost_);
    memory_.reset();
    state_->close();
    ThreadState::remove(state_.get());
    state_.reset();
}

MemoryReports::~MemoryReports()
{
    end();
}

} // namespace kpytrace
