// memory_reports.h: the memory that torch reports to its profiler, for a profile that Kineto does not record, and the mark
// on the thread that such a profile begins on.
#ifndef KPTI_HOSTS_TORCH_SESSION_MEMORY_REPORTS_H
#define KPTI_HOSTS_TORCH_SESSION_MEMORY_REPORTS_H

#include <memory>
#include <vector>

#include "hosts/torch/session/exporter_view.h"
#include "hosts/torch/session/thread_state.h"

namespace kpytrace
{

class MemoryState;

// The reports from construction to end().
class MemoryReports
{
  public:
    // If MEMORY, receives what the calling thread reports, and the threads to which torch copies its state. Else only marks
    // them. INPUTS as ThreadState's WANTS_INPUTS. is_receiving() is false if another profiler has the thread's slot.
    MemoryReports(bool memory, bool inputs);
    ~MemoryReports();
    MemoryReports(const MemoryReports &) = delete;
    MemoryReports &operator=(const MemoryReports &) = delete;

    bool is_receiving() const
    {
        return memory_ != nullptr;
    }

    // The mark of the threads that the session profiles, or null if the slot of the thread that made this was another
    // profiler's, so that there is none. Valid until end().
    const ThreadState *mark() const
    {
        return is_marked_ ? state_.get() : nullptr;
    }

    // Marks the calling thread again, from which ThreadState::free_thread() has removed the mark.
    void mark_again();

    // Receives no more. Called on the thread that made this, the slot is empty afterwards; called on another, the state
    // stays there, and ignores reports, until the thread calls ThreadState::free_thread().
    void end();

    // The reports by time, after end(), as long as this lives.
    const std::vector<kpti_torch_memory> &reports() const
    {
        return reports_;
    }
    // The number of reports that are missing, for want of memory.
    uint64_t lost() const
    {
        return lost_;
    }

  private:
    std::shared_ptr<ThreadState> state_; // in the slot
    std::shared_ptr<MemoryState> memory_;
    bool is_marked_ = false;
    std::vector<kpti_torch_memory> reports_;
    uint64_t lost_ = 0;
};

} // namespace kpytrace
#endif
