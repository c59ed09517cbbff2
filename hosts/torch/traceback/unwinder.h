// unwinder.h: kpytrace as the unwinder that provides the Python frames of torch's combined tracebacks: for
// memory snapshots, the flight recorder, torch.utils._traceback.
//
// torch calls its unwinders newest first, and has no function that removes one. Ours is made once and lives for
// ever. While it is not installed, it makes torch call the next one, torch's own. A frame's "code" is a number
// of the plugin, so that torch holds no code object. Captured frames can be symbolized at any later time.
#ifndef KPTI_HOSTS_TORCH_TRACEBACK_UNWINDER_H
#define KPTI_HOSTS_TORCH_TRACEBACK_UNWINDER_H

#include <string>

namespace kpytrace
{

// Installs the unwinder. A repeated call does nothing. Returns an empty string, or the reason of a failure. The
// GIL is held.
std::string install_unwinder(const std::string &plugin);

// torch's own unwinder serves from now on. Any thread may call it.
void uninstall_unwinder();

} // namespace kpytrace
#endif
