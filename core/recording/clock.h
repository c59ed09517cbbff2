/* clock.h: our own converter from ticks to Unix time in nanoseconds, for hosts that pass no converter.
 *
 * A point holds the tick counter and the system's clocks at one time. A clock is made of such points, the start
 * and the stop of each run. It is a straight line from each point to the next, and continues the first line
 * before the first point and the last line after the last. The first point fixes the Unix time. From there the
 * monotonic clock counts, so setting the system's clock meanwhile changes nothing. All arithmetic is in
 * integers, so there is no drift in long runs.
 *
 * Invariant: the converted time never goes backwards. */
#ifndef KPTI_CORE_RECORDING_CLOCK_H
#define KPTI_CORE_RECORDING_CLOCK_H

#include "abi/kpt_activity.h"

typedef struct kpti_clock_point {
    uint64_t ticks;
    int64_t monotonic_ns;
    int64_t unix_ns;
    uint64_t hz;           /* ticks per second; 0 if not known */
    uint64_t within_ticks; /* the largest error of ticks */
    int ours;              /* ticks were read by kpti_ticks */
} kpti_clock_point;

/* A straight line: ns + (t - ticks) * (whole + fraction / 2^64), up to the next piece. */
typedef struct kpti_clock_piece {
    uint64_t ticks;
    int64_t ns;
    uint64_t whole;
    uint64_t fraction;
} kpti_clock_piece;

typedef struct kpti_clock {
    kpti_clock_piece first;
    const kpti_clock_piece *more; /* the later pieces, by ticks; borrowed */
    uint32_t more_count;
    uint32_t spare;
} kpti_clock;

/* Reads another counter than kpti_ticks. */
typedef uint64_t (*kpti_clock_read_fn)(void *ctx);

/* Measures a point now: the quickest of several tries. Takes about 2 µs. Any thread. */
void kpti_clock_calibrate(kpti_clock_point *out);
/* The same for a counter of HZ ticks per second; HZ is 0 if not known. */
void kpti_clock_calibrate_with(kpti_clock_point *out, kpti_clock_read_fn read, void *ctx,
                               uint64_t hz);

/* Returns how many ticks of kpti_ticks pass in NS nanoseconds. If the processor does not report its rate, the
 * first call in the process takes 10 ms. */
uint64_t kpti_clock_ticks_in(uint64_t ns);

/* Makes the clock through two points. Points less than 10 ms apart are too inexact for the rate. The rate is
 * then the counter's own; if the processor does not report it, it is measured once in the process, which takes
 * 10 ms. */
void kpti_clock_between(const kpti_clock_point *start, const kpti_clock_point *stop,
                        kpti_clock *out);
/* Makes the clock through COUNT points (at least 1) in the order in which they were measured. MORE has space
 * for COUNT pieces, and must live as long as the clock. */
void kpti_clock_through(const kpti_clock_point *points, uint32_t count, kpti_clock_piece *more,
                        kpti_clock *out);

/* Returns the counter's own rate in ticks per second if the points are too near each other to compute it.
 * Returns 0 if they are not, or if the rate is not known. */
uint64_t kpti_clock_rate_between(const kpti_clock_point *start, const kpti_clock_point *stop);

/* Returns whether more than APART ticks have passed since THEN. THEN may be later than NOW if another thread
 * took it. */
static inline int kpti_clock_is_due(uint64_t now, uint64_t then, uint64_t apart)
{
    return now > then && now - then > apart;
}

/* A kpt_convert_fn. Its ctx is a kpti_clock. */
void kpti_clock_convert(void *ctx, const uint64_t *ticks, int64_t *ns, uint64_t count);

#endif
