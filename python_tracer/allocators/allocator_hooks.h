/* allocator_hooks.h: our hooks in the chain of Python's allocators, one per domain. Hooks installed after
 * ours stay: if ours is not on top when recording ends, it remains in the chain and passes every call on. */
#ifndef KPTI_PYTHON_TRACER_ALLOCATORS_ALLOCATOR_HOOKS_H
#define KPTI_PYTHON_TRACER_ALLOCATORS_ALLOCATOR_HOOKS_H

#include "core/memory_log/allocation_log.h"

/* Installs the missing hooks. SAMPLED: for a sampled recording. The caller holds the GIL. */
void kpti_memory_hooks_install(int sampled);
/* Ends LOG, if it records. If the caller holds the GIL, the GIL is released meanwhile, since a thread
 * inside a hook may be waiting for it in an allocator below ours. */
void kpti_memory_hooks_end(kpti_memory_log *log);
/* Removes the hooks that are on top. The caller holds the GIL. */
void kpti_memory_hooks_remove(void);
/* Ends recording, since the interpreter is about to end. The caller holds the GIL. */
void kpti_memory_hooks_exit(void);

#endif
