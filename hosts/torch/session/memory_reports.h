// memory_reports.h: the memory that torch reports to its profiler, for a profile that Kineto does not record. torch finds
// the receiver in a slot of each thread, which it copies to the threads that work for it, such as autograd's. The object
// in the slot is a state of a profiler that emits only marks, so torch's own functions leave it alone.
#ifndef KPTI_HOSTS_TORCH_SESSION_MEMORY_REPORTS_H
#define KPTI_HOSTS_TORCH_SESSION_MEMORY_REPORTS_H

#include <memory>
#include <vector>

#include "hosts/torch/session/exporter_view.h"

namespace kpytrace
{

class MemoryState;

// The reports from construction to end().
class MemoryReports
{
  public:
    // Receives what the calling thread reports, and the threads to which torch copies its state. If there is a state in
    // the thread's slot already, is_receiving() is false.
    MemoryReports();
    ~MemoryReports();
    MemoryReports(const MemoryReports &) = delete;
    MemoryReports &operator=(const MemoryReports &) = delete;

    bool is_receiving() const
    {
        return state_ != nullptr;
    }

    // Receives no more. Called on the thread that made this, the slot is empty afterwards; called on another, the state
    // stays there until the thread calls drop_ended(), and ignores reports.
    void end();
    // Removes a state that has ended from the slot of the calling thread, since torch takes it for a profile that runs.
    // Returns whether there are other threads with one.
    static bool drop_ended();

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
    std::shared_ptr<MemoryState> state_;
    std::vector<kpti_torch_memory> reports_;
    uint64_t lost_ = 0;
};

} // namespace kpytrace
#endif
