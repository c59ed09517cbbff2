/* platform.h: all that differs between processors and operating systems: the tick counter, the thread
 * id, the asymmetric barrier. The only file of the backend that asks for them. */
#ifndef KPTI_PLATFORM_H
#define KPTI_PLATFORM_H

#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "impl/kpti_ticks.h"

/* What the operating system, its tools and the host call this thread. */
static inline uint64_t kpti_os_tid(void)
{
    return (uint64_t)syscall(SYS_gettid);
}

/* The asymmetric barrier: after kpti_membarrier every running thread of the process has passed a full
 * one, so the other threads need none of their own. 1 on success; 0: it is missing, and they do. */
#if defined(__linux__) && defined(SYS_membarrier)

enum { KPTI_MEMBARRIER_EXPEDITED = 1 << 3, KPTI_MEMBARRIER_REGISTER = 1 << 4 };

/* To be called once before the first barrier, and again after a fork. */
static inline int kpti_membarrier_register(void)
{
    return syscall(SYS_membarrier, KPTI_MEMBARRIER_REGISTER, 0, 0) == 0;
}

static inline int kpti_membarrier(void)
{
    return syscall(SYS_membarrier, KPTI_MEMBARRIER_EXPEDITED, 0, 0) == 0;
}

#else

static inline int kpti_membarrier_register(void)
{
    return 0;
}

static inline int kpti_membarrier(void)
{
    return 0;
}

#endif

/* Every other thread has passed a barrier when this returns. Where the system has no such (old kernels, some
 * sandboxes) they have no fence to make up for it: but no processor keeps a store to itself for as long as
 * this takes. */
static inline void kpti_barrier_all(void)
{
    const struct timespec millisecond = {0, 1000000};
    if (!kpti_membarrier()) (void)nanosleep(&millisecond, NULL);
}

/* How a thread says that it is out of a callback, to one that waits and then runs the barrier: that is
 * what orders its stores, so they need no order of their own. ThreadSanitizer knows no such barrier. */
#if defined(__SANITIZE_THREAD__)
#define KPTI_LEAVING memory_order_release
#else
#define KPTI_LEAVING memory_order_relaxed
#endif

#endif
