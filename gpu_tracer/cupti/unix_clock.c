#include "gpu_tracer/cupti/unix_clock.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

static const int64_t second_ns = 1000000000;

/* Unix time minus the monotonic clock, for one recording. CUPTI continues to call kpti_unix_now after the
 * recording has ended. */
static _Atomic int64_t ahead_ns;
static _Atomic int fixed;

static int64_t read_clock(clockid_t id)
{
    struct timespec t;
    (void)clock_gettime(id, &t);
    return (int64_t)t.tv_sec * second_ns + t.tv_nsec;
}

uint64_t kpti_unix_now(void)
{
    if (!atomic_load_explicit(&fixed, memory_order_acquire))
        return (uint64_t)read_clock(CLOCK_REALTIME);
    return (uint64_t)(read_clock(CLOCK_MONOTONIC) +
                      atomic_load_explicit(&ahead_ns, memory_order_relaxed));
}

/* Compares two clocks. Of several bracketed tries, the fastest counts. */
typedef uint64_t (*read_fn)(const kpti_cupti *cupti);

static kpti_compared compare(read_fn inner, read_fn outer, const kpti_cupti *cupti)
{
    enum { TRIES = 16 };
    kpti_compared best = {0, 0, INT64_MAX / 2};
    for (int i = 0; i < TRIES; i++) {
        const uint64_t before = outer(cupti);
        const uint64_t inside = inner(cupti);
        const uint64_t half = (outer(cupti) - before + 1) / 2;
        if ((int64_t)half >= best.doubt) continue;
        best = (kpti_compared){before + half, (int64_t)(inside - (before + half)), (int64_t)half};
    }
    return best;
}

static uint64_t read_unix(const kpti_cupti *cupti)
{
    (void)cupti;
    return (uint64_t)read_clock(CLOCK_REALTIME);
}

static uint64_t read_monotonic(const kpti_cupti *cupti)
{
    (void)cupti;
    return (uint64_t)read_clock(CLOCK_MONOTONIC);
}

static uint64_t read_ours(const kpti_cupti *cupti)
{
    (void)cupti;
    return kpti_unix_now();
}

static uint64_t read_cupti(const kpti_cupti *cupti)
{
    uint64_t time = 0;
    (void)cupti->cuptiGetTimestamp(&time);
    return time;
}

void kpti_unix_clock_begin(kpti_unix_clock *clock, const kpti_cupti *cupti)
{
    *clock = (kpti_unix_clock){0};
    atomic_store_explicit(&ahead_ns, compare(read_unix, read_monotonic, cupti).ahead,
                          memory_order_relaxed);
    atomic_store_explicit(&fixed, 1, memory_order_release);
    clock->asked = cupti->cuptiActivityRegisterTimestampCallback &&
                   cupti->cuptiActivityRegisterTimestampCallback(kpti_unix_now) == CUPTI_SUCCESS;
    if (!clock->asked) clock->first = compare(read_ours, read_cupti, cupti);
}

/* A difference within the error of the two comparisons is not drift; it would stretch a short recording. */
void kpti_unix_clock_compare(kpti_unix_clock *clock, const kpti_cupti *cupti)
{
    kpti_compared last;
    int64_t apart;
    if (clock->asked) return;
    last = compare(read_ours, read_cupti, cupti);
    apart = last.ahead - clock->first.ahead;
    clock->length = (int64_t)(last.at - clock->first.at);
    clock->drift = llabs(apart) > clock->first.doubt + last.doubt ? apart : 0;
}

void kpti_unix_clock_end(void)
{
    atomic_store_explicit(&fixed, 0, memory_order_release);
}

int64_t kpti_unix_clock_of(const kpti_unix_clock *clock, uint64_t time)
{
    double part;
    if (clock->asked || !time) return (int64_t)time;
    part =
        clock->length > 0 ? (double)(int64_t)(time - clock->first.at) / (double)clock->length : 0;
    return (int64_t)time + clock->first.ahead + (int64_t)(part * (double)clock->drift);
}
