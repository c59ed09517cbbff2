// open_calls.h: the lines of the Python calls that were running when the recording began. The tracer delivers
// these calls too, but with the line at which it first recorded them.
#ifndef KPTI_HOSTS_TORCH_SESSION_OPEN_CALLS_H
#define KPTI_HOSTS_TORCH_SESSION_OPEN_CALLS_H

#include <Python.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "abi/kpt.h"

namespace kpytrace
{

class OpenCalls
{
  public:
    // Reads the stacks of all threads. The GIL is held.
    void see();

    // Returns the line of a thread's call at DEPTH, counted from the outermost, or 0 if there is no call of
    // that name.
    uint32_t line(uint64_t os_tid, uint32_t depth, kpt_str function) const;

  private:
    struct Call {
        std::string function;
        uint32_t line;
    };
    std::unordered_map<uint64_t, std::vector<Call>> threads_;
};

} // namespace kpytrace
#endif
