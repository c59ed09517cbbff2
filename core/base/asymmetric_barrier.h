/* asymmetric_barrier.h: a barrier on all threads of the process, made by who comes seldom, so that those who come often need
 * none of their own.
 *
 * Who comes says so, then looks whether it may; who forbids says that, then looks who has come. One of the two sees
 * the other if there is a barrier between the steps of both. */
#ifndef KPTI_CORE_BASE_ASYMMETRIC_BARRIER_H
#define KPTI_CORE_BASE_ASYMMETRIC_BARRIER_H

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { KPTI_MEMBARRIER_EXPEDITED = 1 << 3, KPTI_MEMBARRIER_REGISTER = 1 << 4 };

/* Newer than some systems' headers. */
static inline int kpti_membarrier_call(int command)
{
#ifdef SYS_membarrier
    return syscall(SYS_membarrier, command, 0, 0) == 0;
#else
    (void)command;
    return 0;
#endif
}

/* To be called before the first barrier, which else does it: takes some milliseconds in a process that has threads,
 * once. 0: the system has none. */
static inline int kpti_membarrier_register(void)
{
    return kpti_membarrier_call(KPTI_MEMBARRIER_REGISTER);
}

/* After it every running thread of the process has passed a full barrier. 0: it is missing. */
static inline int kpti_membarrier(void)
{
    return kpti_membarrier_call(KPTI_MEMBARRIER_EXPEDITED);
}

/* Every other thread has passed a barrier when this returns. Where the system has no such (old kernels, some
 * sandboxes) they have no fence to make up for it: but no processor keeps a store to itself for as long as
 * this takes. */
static inline void kpti_barrier_all(void)
{
    struct timespec millisecond = {0, 1000000};
    if (kpti_membarrier() || (kpti_membarrier_register() && kpti_membarrier())) return;
    while (nanosleep(&millisecond, &millisecond) != 0 && errno == EINTR)
        ;
}

/* Who comes says VALUE; what it looks at is looked at after that, once the other one's barrier is there. */
static inline void kpti_barrier_say(uint32_t *what, uint32_t value)
{
    __atomic_store_n(what, value, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

#endif
