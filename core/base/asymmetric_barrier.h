/* asymmetric_barrier.h: an asymmetric barrier. The rare side issues one membarrier() for the whole
 * process, so the hot side needs no fence.
 *
 * Store-load handshake (Dekker): the hot side stores its busy flag, then loads the flag with which
 * the rare side forbids entry. The rare side stores that flag, runs the barrier, then loads the
 * busy flags. At least one of them sees the other's store. */
#ifndef KPTI_CORE_BASE_ASYMMETRIC_BARRIER_H
#define KPTI_CORE_BASE_ASYMMETRIC_BARRIER_H

#include <errno.h>
#ifndef __cplusplus
#include <stdatomic.h>
#endif
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { KPTI_MEMBARRIER_EXPEDITED = 1 << 3, KPTI_MEMBARRIER_REGISTER = 1 << 4 };

/* The commands' constants are newer than some systems' headers, hence the enum above. Returns 1 if
 * the system call succeeded. */
static inline int kpti_membarrier_call(int command)
{
#ifdef SYS_membarrier
    return syscall(SYS_membarrier, command, 0, 0) == 0;
#else
    (void)command;
    return 0;
#endif
}

/* Registers the process. Call it before the first barrier, which otherwise registers by itself.
 * Registration takes some milliseconds, once, in a process that has threads. Returns 0 if the
 * system has no membarrier. */
static inline int kpti_membarrier_register(void)
{
    return kpti_membarrier_call(KPTI_MEMBARRIER_REGISTER);
}

/* Returns 1 after every running thread of the process has passed a full barrier, or 0 if membarrier
 * is missing or not registered. */
static inline int kpti_membarrier(void)
{
    return kpti_membarrier_call(KPTI_MEMBARRIER_EXPEDITED);
}

/* Returns after every other thread has passed a barrier. Without membarrier (old kernels, some
 * sandboxes) it sleeps for a millisecond instead, as the other threads run no fence: no processor
 * delays a store for that long. */
static inline void kpti_process_barrier(void)
{
    struct timespec millisecond = {0, 1000000};
    if (kpti_membarrier() || (kpti_membarrier_register() && kpti_membarrier())) return;
    while (nanosleep(&millisecond, &millisecond) != 0 && errno == EINTR)
        ;
}

/* The hot side's store of VALUE. Later loads of this thread are not reordered before the store once
 * the other side has run kpti_process_barrier(). C++, in which a test is written, has no _Atomic. */
#ifdef __cplusplus
static inline void kpti_flag_store(uint32_t *what, uint32_t value)
{
    __atomic_store_n(what, value, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
#else
static inline void kpti_flag_store(_Atomic uint32_t *what, uint32_t value)
{
    atomic_store_explicit(what, value, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}
#endif

#endif
