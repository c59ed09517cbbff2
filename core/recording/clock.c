#include "core/recording/clock.h"

#include <errno.h>
#include <stdatomic.h>

#include "core/base/assert.h"
#include "core/base/platform.h"

__extension__ typedef unsigned __int128 wide;

enum { TRIES = 16 };

static const int64_t second_ns = 1000000000;
/* the rate is computed from points at least this far apart */
static const int64_t apart_ns = 10000000;

static int64_t read_clock(clockid_t id)
{
    struct timespec t;
    (void)clock_gettime(id, &t);
    return (int64_t)t.tv_sec * second_ns + t.tv_nsec;
}

static uint64_t read_counter(void *ctx)
{
    (void)ctx;
    return kpti_ticks_ordered();
}

/* Each try reads the monotonic clock between two reads of the counter, and Unix time between two reads of the
 * monotonic clock. The value read in between is assigned to the middle of the interval. */
void kpti_clock_calibrate_with(kpti_clock_point *out, kpti_clock_read_fn read, void *ctx,
                               uint64_t hz)
{
    uint64_t best_ticks = UINT64_MAX;
    int64_t best_ns = INT64_MAX;
    int64_t offset_ns = 0;
    memset(out, 0, sizeof *out);
    for (int i = 0; i < TRIES; i++) {
        const uint64_t before = read(ctx);
        const int64_t monotonic = read_clock(CLOCK_MONOTONIC);
        const uint64_t took = read(ctx) - before;
        const int64_t unix_time = read_clock(CLOCK_REALTIME);
        const int64_t took_ns = read_clock(CLOCK_MONOTONIC) - monotonic;
        if (took < best_ticks) {
            best_ticks = took;
            out->ticks = before + took / 2;
            out->monotonic_ns = monotonic;
        }
        if (took_ns < best_ns) {
            best_ns = took_ns;
            offset_ns = unix_time - (monotonic + took_ns / 2);
        }
    }
    out->unix_ns = out->monotonic_ns + offset_ns;
    out->hz = hz;
    out->within_ticks = best_ticks / 2;
}

void kpti_clock_calibrate(kpti_clock_point *out)
{
    kpti_clock_calibrate_with(out, read_counter, NULL, kpti_ticks_hz());
    out->ours = 1;
}

/* Nanoseconds over ticks. */
typedef struct ratio {
    uint64_t ns;
    uint64_t ticks;
} ratio;

static int tell_rate(const kpti_clock_point *a, const kpti_clock_point *b, int64_t least_ns,
                     ratio *out)
{
    if (b->ticks <= a->ticks || b->monotonic_ns - a->monotonic_ns < least_ns) return 0;
    *out = (ratio){(uint64_t)(b->monotonic_ns - a->monotonic_ns), b->ticks - a->ticks};
    return 1;
}

/* Returns our counter's ticks per second, measured once. Two threads may measure at once; both results are
 * right. */
static uint64_t measured_hz(void)
{
    static _Atomic uint64_t known;
    uint64_t hz = atomic_load_explicit(&known, memory_order_relaxed);
    struct timespec left = {0, (long)apart_ns + (long)apart_ns / 10};
    kpti_clock_point a;
    kpti_clock_point b;
    ratio rate;
    if (hz) return hz;
    kpti_clock_calibrate(&a);
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
    kpti_clock_calibrate(&b);
    /* the counter does not advance */
    if (!tell_rate(&a, &b, apart_ns, &rate)) return (uint64_t)second_ns;
    hz = (uint64_t)((wide)rate.ticks * (uint64_t)second_ns / rate.ns);
    atomic_store_explicit(&known, hz, memory_order_relaxed);
    return hz;
}

uint64_t kpti_clock_ticks_in(uint64_t ns)
{
    uint64_t hz = kpti_ticks_hz();
    wide ticks = (wide)ns * (hz ? hz : measured_hz()) / (uint64_t)second_ns;
    return ticks < UINT64_MAX ? (uint64_t)ticks : UINT64_MAX;
}

/* Returns the rate between points that are too near each other: the rate of the whole clock, or the counter's
 * own. For a counter of unknown rate it is computed from the points all the same, or is a nanosecond per tick. */
static ratio usual_rate(const kpti_clock_point *first, const kpti_clock_point *last)
{
    ratio rate = {1, 1};
    if (tell_rate(first, last, apart_ns, &rate)) return rate;
    if (first->hz) return (ratio){(uint64_t)second_ns, first->hz};
    if (first->ours) return (ratio){(uint64_t)second_ns, measured_hz()};
    (void)tell_rate(first, last, 1, &rate);
    return rate;
}

uint64_t kpti_clock_rate_between(const kpti_clock_point *start, const kpti_clock_point *stop)
{
    ratio rate;
    if (tell_rate(start, stop, apart_ns, &rate)) return 0;
    return start->hz || !start->ours ? start->hz : measured_hz();
}

static kpti_clock_piece piece_at(uint64_t ticks, int64_t ns, ratio rate)
{
    const uint64_t rest = rate.ns % rate.ticks;
    kpti_assert(rate.ns); /* else time would stand still */
    return (kpti_clock_piece){ticks, ns, rate.ns / rate.ticks,
                              (uint64_t)(((wide)rest << 64) / rate.ticks)};
}

/* Returns the time at TICKS, or the largest or smallest value if the time does not fit. */
static int64_t at(const kpti_clock_piece *piece, uint64_t ticks)
{
    const int forwards = ticks >= piece->ticks;
    const uint64_t distance = forwards ? ticks - piece->ticks : piece->ticks - ticks;
    const wide ns = (wide)distance * piece->whole + ((wide)distance * piece->fraction >> 64);
    const wide capacity =
        forwards ? (wide)INT64_MAX - (wide)piece->ns : (wide)piece->ns - (wide)INT64_MIN;
    if (ns > capacity) return forwards ? INT64_MAX : INT64_MIN;
    return (int64_t)((uint64_t)piece->ns + (forwards ? (uint64_t)ns : -(uint64_t)ns));
}

/* Whether time never goes backwards: the pieces are in the order of ticks, and none begins before the time at which
 * the previous one ends. */
static inline int is_valid(const kpti_clock *clock)
{
    const kpti_clock_piece *last = &clock->first;
    for (uint32_t i = 0; i < clock->more_count; i++) {
        const kpti_clock_piece *piece = &clock->more[i];
        if (piece->ticks <= last->ticks || piece->ns < at(last, piece->ticks)) return 0;
        last = piece;
    }
    return 1;
}

void kpti_clock_through(const kpti_clock_point *points, uint32_t count, kpti_clock_piece *more,
                        kpti_clock *out)
{
    const kpti_clock_point *const first = &points[0];
    const ratio usual = usual_rate(first, &points[count - 1]);
    kpti_clock_piece *last = &out->first;
    ratio rate;
    kpti_assert(count >= 1 && (more || count <= 2));
    memset(out, 0, sizeof *out);
    out->more = more;
    rate = usual;
    if (count > 1) (void)tell_rate(first, &points[1], apart_ns, &rate);
    out->first = piece_at(first->ticks, first->unix_ns, rate);
    for (uint32_t i = 1; i + 1 < count; i++) {
        const kpti_clock_point *const p = &points[i];
        int64_t ns = first->unix_ns + (p->monotonic_ns - first->monotonic_ns);
        if (p->ticks <= last->ticks) continue; /* the same time, or not in order */
        if (at(last, p->ticks) > ns) ns = at(last, p->ticks);
        rate = usual;
        (void)tell_rate(p, p + 1, apart_ns, &rate);
        last = &more[out->more_count++];
        *last = piece_at(p->ticks, ns, rate);
    }
    kpti_assert(is_valid(out));
}

void kpti_clock_between(const kpti_clock_point *start, const kpti_clock_point *stop,
                        kpti_clock *out)
{
    const kpti_clock_point points[] = {*start, *stop};
    kpti_clock_through(points, 2, NULL, out);
}

/* Returns the last piece that begins at TICKS or before, or the first piece if TICKS is before all. *NEXT
 * receives the ticks at which the next piece begins. */
static const kpti_clock_piece *find(const kpti_clock *clock, uint64_t ticks, uint64_t *next)
{
    uint32_t low = 0; /* number of pieces in more that begin at TICKS or before */
    uint32_t high = clock->more_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (clock->more[middle].ticks <= ticks)
            low = middle + 1;
        else
            high = middle;
    }
    *next = low < clock->more_count ? clock->more[low].ticks : UINT64_MAX;
    return low ? &clock->more[low - 1] : &clock->first;
}

static int64_t at_any(const kpti_clock *clock, uint64_t ticks)
{
    uint64_t next;
    return at(find(clock, ticks, &next), ticks);
}

/* A stretch is a part of a piece that is short enough for one 64-bit multiplication; exact arithmetic takes
 * several. A stretch begins exactly on the piece, at a multiple of the stretch's length from the piece's
 * beginning, and from there is less than a nanosecond behind the piece. So time stays monotone, and depends on
 * the ticks alone. */
enum { STRETCH_BITS = 24, MAX_WHOLE = 1 << (32 - STRETCH_BITS) };
typedef struct stretch {
    uint64_t ticks;
    uint64_t length; /* 0: no stretch */
    int64_t ns;
    uint64_t part; /* part of the next nanosecond, in units of 2^-32 ns */
    uint64_t rate; /* length of a tick, in the same units */
} stretch;

/* Returns the stretch that contains TICKS, with length 0 if the piece has none there. */
static stretch stretch_at(const kpti_clock *clock, uint64_t ticks)
{
    const uint64_t max = (uint64_t)1 << STRETCH_BITS;
    stretch s = {0};
    uint64_t next;
    const kpti_clock_piece *piece = find(clock, ticks, &next);
    const uint64_t distance = (ticks - piece->ticks) & ~(max - 1);
    if (ticks < piece->ticks || piece->whole >= MAX_WHOLE) return s;
    s.ticks = piece->ticks + distance;
    s.ns = at(piece, s.ticks);
    s.part = (uint64_t)((wide)distance * piece->fraction >> 32) & UINT32_MAX;
    s.rate = piece->whole << 32 | piece->fraction >> 32;
    if (s.ns < INT64_MAX - ((int64_t)MAX_WHOLE << STRETCH_BITS)) /* else ns may overflow */
        s.length = next - s.ticks < max ? next - s.ticks : max;
    kpti_assert(!s.length || ticks - s.ticks < s.length ||
                ticks == UINT64_MAX); /* the end of the last piece */
    return s;
}

void kpti_clock_convert(void *ctx, const uint64_t *ticks, int64_t *ns, uint64_t count)
{
    stretch s = {0};
    for (uint64_t i = 0; i < count; i++) {
        uint64_t distance = ticks[i] - s.ticks;
        if (__builtin_expect(distance >= s.length, 0)) {
            s = stretch_at(ctx, ticks[i]);
            distance = ticks[i] - s.ticks;
        }
        ns[i] =
            s.length ? s.ns + (int64_t)((distance * s.rate + s.part) >> 32) : at_any(ctx, ticks[i]);
        kpti_assert(i == 0 || ticks[i] < ticks[i - 1] || ns[i] >= ns[i - 1]);
    }
}
