/* thread_clock.h: the monotonic clock, for who asks at every operator.
 *
 * The system reads the counter between barriers. On some processors these cost more than their own time, as
 * what comes after them runs as if for the first time: 3 µs a call where code is otherwise warm. Here the
 * counter is read without them, and between two looks at the clock, a millisecond apart, is taken to run at
 * its usual pace.
 *
 * Each thread has its own. What it tells never goes backwards, and is less than a microsecond off. */
#ifndef KPTI_EXECUTION_TRACE_RECORD_THREAD_CLOCK_H
#define KPTI_EXECUTION_TRACE_RECORD_THREAD_CLOCK_H

#include "core/base/tick_counter.h"

/* Begins as zeroes: the next one looks. */
typedef struct kpti_et_now {
    uint64_t ticks;  /* when it last looked */
    int64_t ns;      /* what it was then */
    uint64_t length; /* how many ticks that is good for */
    uint64_t pace;   /* a tick, in 2^-32 ns */
} kpti_et_now;

/* The system's own clocks. */
int64_t kpti_et_clock_ns(clockid_t id);

int64_t kpti_et_now_look(kpti_et_now *now);

static inline int64_t kpti_et_now_ns(kpti_et_now *now)
{
    const uint64_t passed = kpti_ticks() - now->ticks;
    if (__builtin_expect(passed >= now->length, 0)) return kpti_et_now_look(now);
    return now->ns + (int64_t)(passed * now->pace >> 32);
}

#endif
