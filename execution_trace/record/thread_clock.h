/* thread_clock.h: the monotonic clock, cheap enough to read at every operator.
 *
 * The system reads the counter between barriers. On some processors a barrier also slows the code after it:
 * 3 µs per call where the code is otherwise warm. This clock reads the counter without barriers. It reads
 * the system's clock once per millisecond and assumes a constant rate in between.
 *
 * Each thread has its own clock. Its time never decreases, and its error is less than a microsecond. */
#ifndef KPTI_EXECUTION_TRACE_RECORD_THREAD_CLOCK_H
#define KPTI_EXECUTION_TRACE_RECORD_THREAD_CLOCK_H

#include "core/base/tick_counter.h"
#include "execution_trace/journal/system_clock.h"

/* Starts as zeroes: the first reading then reads the system's clock. */
typedef struct kpti_et_now {
    uint64_t ticks;  /* at the last reading of the system's clock */
    int64_t ns;      /* the system's clock at that time */
    uint64_t length; /* ticks until the next reading */
    uint64_t pace;   /* length of a tick, in 2^-32 ns */
} kpti_et_now;

int64_t kpti_et_now_look(kpti_et_now *now);

static inline int64_t kpti_et_now_ns(kpti_et_now *now)
{
    const uint64_t passed = kpti_ticks() - now->ticks;
    if (__builtin_expect(passed >= now->length, 0)) return kpti_et_now_look(now);
    return now->ns + (int64_t)(passed * now->pace >> 32);
}

#endif
