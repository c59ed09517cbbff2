#include "execution_trace/record/thread_clock.h"

#include <pthread.h>
#include <stdatomic.h>

static const int64_t second_ns = 1000000000;
static const int64_t good_for_ns = 1000000;
static const int64_t apart_ns = 10000000; /* of the readings that set the rate */

/* An upper bound for the tick of any counter: 64 ns. */
static const uint64_t most_pace = (uint64_t)64 << 32;

typedef struct look {
    uint64_t ticks; /* just before the reading */
    uint64_t took;  /* duration of the reading in ticks */
    int64_t ns;
} look;

/* Returns the fastest of several readings, since the thread may be preempted in the middle of one. */
static look take_look(void)
{
    enum { TRIES = 4 };
    look best = {0, UINT64_MAX, 0};
    for (int i = 0; i < TRIES; i++) {
        const uint64_t before = kpti_ticks_ordered();
        const int64_t ns = kpti_et_clock_ns(CLOCK_MONOTONIC);
        const uint64_t took = kpti_ticks_ordered() - before;
        if (took < best.took) best = (look){before, took, ns};
    }
    return best;
}

static int was_slow(look l, uint64_t pace)
{
    return (double)l.took * (double)pace > 5000 * 4294967296.0; /* 5 µs */
}

/* Returns the counter's rate, which is constant as long as the machine runs, or 0 if it is not known yet.
 * If the processor does not report it, it is measured with two readings of any threads. They are not far
 * apart, since the machine may have slept in between. */
static uint64_t usual_pace(look now)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static look first;
    static _Atomic uint64_t measured;
    const uint64_t hz = kpti_ticks_hz();
    uint64_t pace = hz ? ((uint64_t)second_ns << 32) / hz
                       : atomic_load_explicit(&measured, memory_order_relaxed);
    if (pace || pthread_mutex_trylock(&lock) != 0) return pace;
    if (now.ns - first.ns >= apart_ns && now.ticks > first.ticks)
        pace = ((uint64_t)(now.ns - first.ns) << 32) / (now.ticks - first.ticks);
    if (now.ns - first.ns > second_ns || pace > most_pace || was_slow(first, pace) ||
        was_slow(now, pace)) {
        pace = 0;
        first = now;
    }
    atomic_store_explicit(&measured, pace, memory_order_relaxed);
    (void)pthread_mutex_unlock(&lock);
    return pace;
}

/* Returns 1 if the counter has run at PACE between NOW and SEEN. It has not if the machine has slept, or if
 * the counter is unusable. */
static int keeps_pace(const kpti_et_now *now, look seen, uint64_t pace)
{
    const double passed = (double)(seen.ns - now->ns);
    const double expected = (double)(seen.ticks - now->ticks) * ((double)pace / 4294967296.0);
    const double off = passed > expected ? passed - expected : expected - passed;
    return off < expected * 0.01 + 10000;
}

int64_t kpti_et_now_look(kpti_et_now *now)
{
    const look seen = take_look();
    const uint64_t pace = usual_pace(seen);
    const int is_good = pace && pace <= most_pace && (!now->ticks || keeps_pace(now, seen, pace));
    const uint64_t passed = seen.ticks - now->ticks;
    /* An upper bound for the times that this clock has returned. */
    const int64_t estimate =
        now->ns + (int64_t)((passed < now->length ? passed : now->length) * now->pace >> 32);
    now->ticks = seen.ticks;
    now->ns = seen.ns > estimate ? seen.ns : estimate;
    now->pace = pace;
    now->length = is_good ? ((uint64_t)good_for_ns << 32) / pace : 0;
    return now->ns;
}
