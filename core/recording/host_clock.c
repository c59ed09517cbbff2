#include "core/recording/host_clock.h"

enum { BLOCK = 256 };

/* A kpt_convert_fn. Its ctx is a kpti_host_ticks. */
static void convert(void *ctx, const uint64_t *ticks, int64_t *ns, uint64_t count)
{
    const kpti_host_ticks *host = ctx;
    uint64_t theirs[BLOCK];
    for (uint64_t done = 0; done < count;) {
        const uint64_t some = count - done < BLOCK ? count - done : BLOCK;
        kpti_clock_convert(host->clock, ticks + done, ns + done, some);
        for (uint64_t i = 0; i < some; i++)
            theirs[i] = (uint64_t)(ns[done + i] + host->shift_ns);
        host->convert(host->convert_ctx, theirs, ns + done, some);
        done += some;
    }
}

void kpti_host_ticks_between(kpti_host_ticks *out, uint32_t tick_source, kpti_clock *clock,
                             const kpti_clock_point *start, kpt_delivery *delivery)
{
    int64_t shift_ns = 0;
    if (tick_source == KPT_TICKS_MONOTONIC_NS) shift_ns = start->monotonic_ns - start->unix_ns;
    *out = (kpti_host_ticks){clock, shift_ns, delivery->convert, delivery->convert_ctx};
    if (!delivery->convert) return;
    if (tick_source != KPT_TICKS_MONOTONIC_NS && tick_source != KPT_TICKS_REALTIME_NS) return;
    delivery->convert = convert;
    delivery->convert_ctx = out;
}
