// session_settings.h: the arguments of install().
#ifndef KPTI_HOSTS_TORCH_SESSION_SESSION_SETTINGS_H
#define KPTI_HOSTS_TORCH_SESSION_SESSION_SETTINGS_H

#include <Python.h>

#include <cstdint>
#include <string>
#include <vector>

#include "hosts/torch/session/watched_objects.h"

namespace kpytrace
{

// Which part of the recording is passed to torch at the session's end.
enum class Mode { ALL = 0, FULL = 1, FAST = 2 };

// Strings and code objects are owned.
struct Settings {
    std::string plugin;
    Mode mode = Mode::FULL;
    bool late_threads = true;
    uint32_t tool_id = 0;
    std::vector<std::string> prefixes;
    struct Watched {
        Watch what;
        PyCodeObject *code;
    };
    std::vector<Watched> watched;
};

} // namespace kpytrace
#endif
