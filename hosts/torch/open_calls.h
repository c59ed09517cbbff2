// open_calls.h: the Python calls that were running when the recording began: at which line, and which of
// them are watched. The tracer delivers them flagged, but sees them later and without an answer.
#ifndef KPTI_TORCH_OPEN_CALLS_H
#define KPTI_TORCH_OPEN_CALLS_H

#include <string>
#include <unordered_map>
#include <vector>

#include "objects.h"

namespace kpytrace
{

struct OpenCall {
    std::string function;
    uint32_t line;
    uint64_t answer; // 0: not watched
};

class OpenCalls
{
  public:
    // Looks at all threads. The GIL is held.
    void see(Objects &objects, PyCodeObject *module_call, PyCodeObject *optimizer_step);

    // The ORDINALth of a thread, from the outermost; null: there is no such call of that name.
    const OpenCall *find(uint64_t os_tid, uint32_t ordinal, kpt_str function) const;

  private:
    std::unordered_map<uint64_t, std::vector<OpenCall>> threads_;
};

} // namespace kpytrace
#endif
