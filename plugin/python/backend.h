/* backend.h: the backend for the CPython of this process, found beside the plugin and opened only
 * when that CPython is initialised. Once opened it stays: it is never unloaded. */
#ifndef KPTI_PLUGIN_PYTHON_BACKEND_H
#define KPTI_PLUGIN_PYTHON_BACKEND_H

#include "abi/impl/kpti_impl.h"

/* The backend, or NULL with the reason in WHY, which is not an error: a no-op does then. Tells its
 * steps to the host's log. Any thread, with or without the GIL, no lock held. */
const kpti_backend *kpti_backend_find(const kpt_host *host, kpti_error *why);

/* The path of NAME in the plugin's folder; 0 where the loader does not tell. */
int kpti_path_beside_plugin(const char *name, char *out, size_t size);
/* dlopen, which fork waits for. */
void *kpti_open_library(const char *path, int flags);

#endif
