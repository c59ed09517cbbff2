/* timestamp_decoder.c: see timestamp_decoder.h. The loop over plain enters and exits is one of the three hot
 * loops of a delivery: a load, a test and a store. */
#include "core/recording/replay/timestamp_decoder.h"

#include "core/base/assert.h"

#define HIGH_HALF (~(uint64_t)UINT32_MAX)

void kpti_times_init(kpti_times *times, kpt_convert_fn convert, void *convert_ctx)
{
    times->convert = convert;
    times->convert_ctx = convert_ctx;
    times->last_ticks = 0;
    times->most_ticks = UINT64_MAX;
    times->high = 0;
    times->last_ns = INT64_MIN;
    times->repairs = 0;
    times->second_of = times->untimed = 0;
}

void kpti_times_begin_run(kpti_times *times, uint64_t start_ticks, uint64_t stop_ticks)
{
    if (start_ticks > times->last_ticks) times->last_ticks = start_ticks;
    times->most_ticks = stop_ticks > times->last_ticks ? stop_ticks : times->last_ticks;
    kpti_assert(kpti_times_are_valid(times, 0));
}

void kpti_times_begin_chunk(kpti_times *times, uint64_t base_ticks, uint32_t untimed)
{
    times->high = base_ticks & HIGH_HALF;
    times->second_of = 0;
    times->untimed = untimed;
}

/* Replaces times that go backwards by the last time before them; a host's converter may return such times. */
static void level(kpti_times *times, uint32_t count)
{
    int64_t last = times->last_ns;
    for (uint32_t i = 0; i < count; i++) {
        if (times->ns[i] > last) last = times->ns[i];
        times->ns[i] = last;
    }
}

/* Converts the first COUNT ticks, at least one. */
static void to_ns(kpti_times *times, uint32_t count)
{
    int64_t *const ns = times->ns;
    int falls;
    if (times->convert)
        times->convert(times->convert_ctx, times->ticks, ns, count);
    else
        memcpy(ns, times->ticks, count * sizeof *ns);
    kpti_assert(count >= 1 && count <= KPTI_TIMES_BLOCK);
    falls = ns[0] < times->last_ns;
    for (uint32_t i = 1; i < count; i++)
        falls |= ns[i] < ns[i - 1];
    if (falls) level(times, count);
    times->last_ns = ns[count - 1];
}

int64_t kpti_times_at(kpti_times *times, uint64_t ticks)
{
    if (ticks < times->last_ticks) ticks = times->last_ticks;
    if (ticks > times->most_ticks) ticks = times->most_ticks;
    times->last_ticks = times->ticks[0] = ticks;
    to_ns(times, 1);
    kpti_assert(kpti_times_are_valid(times, 1));
    return times->last_ns;
}

int64_t kpti_times_of(const kpti_times *times, uint64_t ticks)
{
    int64_t ns = (int64_t)ticks;
    if (times->convert) times->convert(times->convert_ctx, &ticks, &ns, 1);
    return ns;
}

/* Returns the ticks of an event without a time, of a second word, or of an event outside the bounds. An event
 * is before the last if another processor's counter lags, which is a repair. It is after the run if its
 * callback was running when the run stopped, which is no error. */
static uint64_t odd_time(kpti_times *times, kpti_event event, uint64_t last)
{
    const uint32_t kind = kpti_event_kind(event);
    const uint64_t now = times->high | (uint32_t)event;
    if (times->second_of) {
        if (times->second_of == KPTI_EVENT_EPOCH) times->high = event & HIGH_HALF;
        times->second_of = 0;
        return last;
    }
    if (kpti_event_is_long(kind)) times->second_of = kind;
    if (!kpti_times_is_plain(kind) && kind != KPTI_EVENT_GC_END) return last;
    if (now > times->most_ticks) return times->most_ticks;
    if (now >= last) return now;
    if (kind != KPTI_EVENT_OPEN && kind != KPTI_EVENT_LINE && kind != KPTI_EVENT_CALLER)
        times->repairs++;
    return last;
}

uint32_t kpti_times_block(kpti_times *times, const kpti_event *events, uint32_t count)
{
    const uint32_t block = count < KPTI_TIMES_BLOCK ? count : KPTI_TIMES_BLOCK;
    uint64_t *const ticks = times->ticks;
    const uint64_t before = times->last_ticks;
    uint64_t last = before;
    uint32_t i = 0;
    for (; times->untimed && i < block; times->untimed--)
        ticks[i++] = last;
    kpti_assert(!times->untimed || !times->second_of);
    if (times->second_of) ticks[i++] = odd_time(times, events[0], last);
    while (i < block) {
        const uint64_t high = times->high;
        const uint64_t max = times->most_ticks;
        for (; i < block; i++) {
            const uint64_t now = high | (uint32_t)events[i];
            if (!kpti_times_is_plain(kpti_event_kind(events[i])) || now < last || now > max) break;
            ticks[i] = last = now;
        }
        for (int odd = 1; i < block && odd; i++) {
            ticks[i] = last = odd_time(times, events[i], last);
            odd = times->second_of != 0;
        }
    }
    times->last_ticks = last;
    to_ns(times, block);
    kpti_assert(last >= before && kpti_times_are_valid(times, block));
    return block;
}
