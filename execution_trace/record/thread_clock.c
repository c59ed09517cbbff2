#include "execution_trace/record/thread_clock.h"

#include <pthread.h>

static const int64_t second_ns = 1000000000;
static const int64_t good_for_ns = 1000000;
static const int64_t apart_ns = 10000000; /* looks that are so far apart tell the pace */

/* More than a tick of any counter has: 64 ns. */
static const uint64_t most_pace = (uint64_t)64 << 32;

typedef struct look {
    uint64_t ticks; /* just before */
    uint64_t took;  /* ticks */
    int64_t ns;
} look;

/* Of some tries, the one that took least: a thread may be put aside in the middle. */
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

/* The counter's, which stays the same as long as the machine runs; 0: it is not known yet. A processor that
 * doesn't tell is measured, by two looks of whichever threads: not over long times, in which the machine may
 * have slept. */
static uint64_t usual_pace(look now)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static look first;
    static uint64_t measured; /* atomic */
    const uint64_t hz = kpti_ticks_hz();
    uint64_t pace =
        hz ? ((uint64_t)second_ns << 32) / hz : __atomic_load_n(&measured, __ATOMIC_RELAXED);
    if (pace || pthread_mutex_trylock(&lock) != 0) return pace;
    if (now.ns - first.ns >= apart_ns && now.ticks > first.ticks)
        pace = ((uint64_t)(now.ns - first.ns) << 32) / (now.ticks - first.ticks);
    if (now.ns - first.ns > second_ns || pace > most_pace || was_slow(first, pace) ||
        was_slow(now, pace)) {
        pace = 0;
        first = now;
    }
    __atomic_store_n(&measured, pace, __ATOMIC_RELAXED);
    (void)pthread_mutex_unlock(&lock);
    return pace;
}

/* Whether the counter has run at PACE between NOW and SEEN: the machine may have slept, or the counter be
 * no good. */
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
    /* It has told no more than this. */
    const int64_t told =
        now->ns + (int64_t)((passed < now->length ? passed : now->length) * now->pace >> 32);
    now->ticks = seen.ticks;
    now->ns = seen.ns > told ? seen.ns : told;
    now->pace = pace;
    now->length = is_good ? ((uint64_t)good_for_ns << 32) / pace : 0;
    return now->ns;
}
