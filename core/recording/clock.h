/* clock.h: our own converter from ticks to Unix time in nanoseconds, for hosts that bring none.
 *
 * A point says what the counter and the system's clocks were at one moment. A clock is made of such
 * points, the start and the stop of each run, and goes in a straight line from each to the next; before
 * the first and behind the last it goes on as there. The first point says what Unix time it is; from
 * there it is the monotonic clock that counts, so a clock that somebody sets meanwhile disturbs
 * nothing. Integer arithmetic only: no drift, however long it runs.
 *
 * Invariant: it never goes backwards. */
#ifndef KPTI_CORE_RECORDING_CLOCK_H
#define KPTI_CORE_RECORDING_CLOCK_H

#include "abi/kpt_activity.h"

typedef struct kpti_clock_point {
    uint64_t ticks;
    int64_t monotonic_ns;
    int64_t unix_ns;
    uint64_t hz;           /* ticks a second, where known; else 0 */
    uint64_t within_ticks; /* how far it may be off */
    int ours;              /* ticks are of kpti_ticks */
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
    const kpti_clock_piece *more; /* those after it, later and later; borrowed */
    uint32_t more_count;
    uint32_t spare;
} kpti_clock;

/* Another counter than kpti_ticks. */
typedef uint64_t (*kpti_clock_read_fn)(void *ctx);

/* Takes a point now: of several tries, the one that took least. About 2 µs. Any thread. */
void kpti_clock_calibrate(kpti_clock_point *out);
/* The same for a counter of HZ ticks a second, or 0 if that is not known. */
void kpti_clock_calibrate_with(kpti_clock_point *out, kpti_clock_read_fn read, void *ctx,
                               uint64_t hz);

/* How many ticks of kpti_ticks pass in NS nanoseconds. Takes 10 ms, once in the process, where the
 * processor doesn't tell. */
uint64_t kpti_clock_ticks_in(uint64_t ns);

/* The clock through two points. Where they are less than 10 ms apart their distance says too little
 * about the rate: that is then the counter's own, or, where the processor doesn't tell, measured once
 * in the process, which takes 10 ms. */
void kpti_clock_between(const kpti_clock_point *start, const kpti_clock_point *stop,
                        kpti_clock *out);
/* The clock through COUNT points, 1 at least, in the order in which they were taken. MORE has room for
 * COUNT pieces, and must live as long as the clock. */
void kpti_clock_through(const kpti_clock_point *points, uint32_t count, kpti_clock_piece *more,
                        kpti_clock *out);

/* The counter's own rate, in ticks a second, for points that are too near each other to tell it; 0 where
 * they are not. */
uint64_t kpti_clock_rate_between(const kpti_clock_point *start, const kpti_clock_point *stop);

/* Whether APART ticks have passed since THEN. Another thread's THEN may be later than NOW. */
static inline int kpti_clock_is_due(uint64_t now, uint64_t then, uint64_t apart)
{
    return now > then && now - then > apart;
}

/* A kpt_convert_fn, whose ctx is a kpti_clock. */
void kpti_clock_convert(void *ctx, const uint64_t *ticks, int64_t *ns, uint64_t count);

#endif
