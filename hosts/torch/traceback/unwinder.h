// unwinder.h: kpytrace as the one who tells torch's combined tracebacks the Python frames: for memory
// snapshots, the flight recorder, torch.utils._traceback.
//
// torch asks its unwinders newest first, and has no call that takes one away: ours is made once, lives
// for ever, and has torch ask the next one, its own, while it is not to serve. A frame's "code" is a
// number of the plugin's, so that torch holds no code object; what was gathered can be symbolized at
// any time after.
#ifndef KPTI_HOSTS_TORCH_TRACEBACK_UNWINDER_H
#define KPTI_HOSTS_TORCH_TRACEBACK_UNWINDER_H

#include <string>

namespace kpytrace
{

// Serves from now on; again is no change. Empty, or why it can't. The GIL is held.
std::string install_unwinder(const std::string &plugin);

// torch's own serves from now on. Any thread.
void uninstall_unwinder();

} // namespace kpytrace
#endif
