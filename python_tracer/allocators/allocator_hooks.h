/* allocator_hooks.h: our place in the chain of Python's allocators, one for each domain. A hook that came after
 * ours stays: where we are not on top when recording ends, ours remain and hand everything on. */
#ifndef KPTI_PYTHON_TRACER_ALLOCATORS_ALLOCATOR_HOOKS_H
#define KPTI_PYTHON_TRACER_ALLOCATORS_ALLOCATOR_HOOKS_H

#include "core/memory_log/allocation_log.h"

/* Puts the hooks where they are not; SAMPLED: for a recording of samples. The GIL is held. */
void kpti_memory_hooks_install(int sampled);
/* Ends LOG, if it records. A GIL that is held is released meanwhile: a thread inside may be waiting for it, in
 * an allocator below ours. */
void kpti_memory_hooks_end(kpti_memory_log *log);
/* Takes those away that are on top. The GIL is held. */
void kpti_memory_hooks_remove(void);
/* The interpreter is about to end: recording does. The GIL is held. */
void kpti_memory_hooks_exit(void);

#endif
