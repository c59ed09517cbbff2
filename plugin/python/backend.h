/* backend.h: finds the backend for the CPython of this process beside the plugin, and opens it once that
 * CPython is initialised. A backend is never unloaded. */
#ifndef KPTI_PLUGIN_PYTHON_BACKEND_H
#define KPTI_PLUGIN_PYTHON_BACKEND_H

#include "abi/impl/kpti_impl.h"

/* Returns the backend, or NULL with the reason in WHY. NULL is not an error; the plugin then makes a no-op.
 * Logs its steps to the host's log. Any thread may call it, with or without the GIL, without holding a lock. */
const kpti_backend *kpti_backend_find(const kpt_host *host, kpti_error *why);

/* Writes the path of NAME in the plugin's folder to OUT. Returns 0 if dladdr cannot determine the folder, or if
 * OUT is too small. */
int kpti_path_beside_plugin(const char *name, char *out, size_t size);
/* dlopen under the lock that fork waits for (loader_fork_lock.h). */
void *kpti_open_library(const char *path, int flags);

#endif
