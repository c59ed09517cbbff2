/* platform.h: all that differs between processors and operating systems: the tick counter, the thread
 * id, the barrier on all threads. The only file of the backend that asks for them. */
#ifndef KPTI_CORE_BASE_PLATFORM_H
#define KPTI_CORE_BASE_PLATFORM_H

#include "core/base/asymmetric_barrier.h"
#include "core/base/tick_counter.h"

/* What the operating system, its tools and the host call this thread. */
static inline uint64_t kpti_os_tid(void)
{
    return (uint64_t)syscall(SYS_gettid);
}

/* How a thread says that it is out of a callback, to one that waits and then runs the barrier: that is
 * what orders its stores, so they need no order of their own. ThreadSanitizer knows no such barrier. */
#if defined(__SANITIZE_THREAD__)
#define KPTI_LEAVING memory_order_release
#else
#define KPTI_LEAVING memory_order_relaxed
#endif

#endif
