/* backend.c: the entry through which the plugin finds this backend, and the Python that it was built for. */
#include "abi/impl/kpti_execution_trace.h"
#include "python_tracer/allocators/memory_tracer.h"
#include "python_tracer/capture/tracebacks.h"
#include "python_tracer/fork_handlers.h"
#include "python_tracer/installed_parts.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/interpreter/installation.h"
#include "python_tracer/state/fork_watch.h"
#include "python_tracer/tracer.h"

__attribute__((visibility("default"))) const kpti_backend *kpti_backend_entry(void);

/* When the library is opened: several threads may call the entry at the same time. */
__attribute__((constructor)) static void connect_parts(void)
{
    kpti_installation_use(&kpti_python_parts);
    kpti_fork_use(&kpti_python_fork_handlers);
}

const kpti_backend *kpti_backend_entry(void)
{
    static const kpti_backend backend = {
        .interface = KPTI_INTERFACE,
        .python_minor = KPTI_PYTHON_MINOR,
        .free_threaded = KPTI_FREE_THREADED,
        .version = KPTI_VERSION,
        .tracer = &kpti_python_tracer,
        /* Without a GIL, allocators can't be exchanged while other threads use them. */
        .memory = KPTI_FREE_THREADED ? NULL : &kpti_python_memory,
        .observer = &kpti_execution_trace,
        .tracebacks = &kpti_python_tracebacks,
    };
    return &backend;
}
