/* tick_counter.h: the processor's counter, from which events get their timestamps.
 *
 * kpti_ticks reads it in one to several nanoseconds, unordered with the instructions before and
 * after.
 * kpti_ticks_ordered is ordered with them. It costs about ten times as much, and also stalls the
 * pipeline.
 * kpti_ticks_hz returns the counter's ticks per second if the processor reports them, otherwise
 * 0. */
#ifndef KPTI_CORE_BASE_TICK_COUNTER_H
#define KPTI_CORE_BASE_TICK_COUNTER_H

#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)

static inline uint64_t kpti_ticks(void)
{
    return __builtin_ia32_rdtsc();
}

static inline uint64_t kpti_ticks_ordered(void)
{
    uint64_t ticks;
    __builtin_ia32_lfence();
    ticks = __builtin_ia32_rdtsc();
    __builtin_ia32_lfence();
    return ticks;
}

static inline uint64_t kpti_ticks_hz(void)
{
    return 0;
}

#elif defined(__aarch64__)

static inline uint64_t kpti_ticks(void)
{
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}

static inline uint64_t kpti_ticks_ordered(void)
{
    uint64_t ticks;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(ticks) : : "memory");
    return ticks;
}

static inline uint64_t kpti_ticks_hz(void)
{
    uint64_t hz;
    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hz));
    return hz;
}

#else /* no known counter: use the monotonic clock */

static inline uint64_t kpti_ticks(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static inline uint64_t kpti_ticks_ordered(void)
{
    return kpti_ticks();
}

static inline uint64_t kpti_ticks_hz(void)
{
    return 1000000000U;
}

#endif
#endif
