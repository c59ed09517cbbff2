/* bench.h: helpers of the benchmarks in C. */
#ifndef KPT_BENCH_H
#define KPT_BENCH_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double now_ns(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Ends the program with a message that WHAT failed, unless HOLDS. */
static inline void must(int holds, const char *what)
{
    if (holds) return;
    (void)fprintf(stderr, "%s: %s failed\n", program_invocation_short_name, what);
    exit(EXIT_FAILURE);
}

#endif
