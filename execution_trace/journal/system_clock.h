/* system_clock.h: the clocks of the system, in nanoseconds. */
#ifndef KPTI_EXECUTION_TRACE_JOURNAL_SYSTEM_CLOCK_H
#define KPTI_EXECUTION_TRACE_JOURNAL_SYSTEM_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t kpti_et_clock_ns(clockid_t id)
{
    struct timespec t;
    (void)clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#endif
