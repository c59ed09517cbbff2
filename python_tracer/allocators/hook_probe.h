/* hook_probe.h: checks whether a hook of ours is still in its chain of allocators. */
#ifndef KPTI_PYTHON_TRACER_ALLOCATORS_HOOK_PROBE_H
#define KPTI_PYTHON_TRACER_ALLOCATORS_HOOK_PROBE_H

#include <stdint.h>

/* Whether an allocation by ALLOCATE_ONE, from the allocator of POOL, reaches our hook there. Records
 * nothing. */
int kpti_memory_hook_is_reached(uint32_t pool, void (*allocate_one)(void));

#endif
