#include "python_tracer/allocators/hook_probe.h"

#include "core/memory_log/allocation_log.h"

int kpti_memory_hook_is_reached(uint32_t pool, void (*allocate_one)(void))
{
    kpti_memory_thread *thread = kpti_memory_thread_get();
    int reached;
    if (!thread) return 1;
    atomic_store_explicit(&thread->busy, 1, memory_order_relaxed); /* so that it is not recorded */
    thread->probe = (int)pool + 1;
    allocate_one();
    reached = thread->probe == KPTI_MEMORY_PROBED;
    thread->probe = 0;
    atomic_store_explicit(&thread->busy, 0, memory_order_release);
    return reached;
}
