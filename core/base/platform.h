/* platform.h: everything that differs between processors and operating systems: the tick counter,
 * the thread id and the barrier on all threads. Only this header and the two that it includes
 * depend on the platform. */
#ifndef KPTI_CORE_BASE_PLATFORM_H
#define KPTI_CORE_BASE_PLATFORM_H

#include "core/base/asymmetric_barrier.h"
#include "core/base/tick_counter.h"

/* The id of this thread in the operating system, in its tools and in the host. */
static inline uint64_t kpti_os_tid(void)
{
    return (uint64_t)syscall(SYS_gettid);
}

/* The memory order of the store with which a thread reports that it has left a callback. The
 * waiting thread runs the barrier after it has seen that store. The barrier orders the leaving
 * thread's earlier stores, so they need no order of their own. ThreadSanitizer does not model the
 * barrier. */
#if defined(__SANITIZE_THREAD__)
#define KPTI_CALLBACK_EXIT_ORDER memory_order_release
#else
#define KPTI_CALLBACK_EXIT_ORDER memory_order_relaxed
#endif

#endif
