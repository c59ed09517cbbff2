/* host_clock.h: converts our ticks to the host's ticks. Events are stamped with the processor's counter, which
 * is the cheapest clock. If a host names one of the system's clocks, its converter receives the value that this
 * clock had at the event, computed by our own clock. The error is the tens of nanoseconds that reading both
 * clocks takes. A host that has a clock of its own (KPT_TICKS_HOST) needs no conversion: its events carry its
 * own ticks. */
#ifndef KPTI_CORE_RECORDING_HOST_CLOCK_H
#define KPTI_CORE_RECORDING_HOST_CLOCK_H

#include "abi/kpt_host.h"
#include "core/recording/clock.h"

typedef struct kpti_host_ticks {
    kpti_clock *clock;
    int64_t shift_ns;       /* added to Unix time to get the host's clock */
    kpt_convert_fn convert; /* the host's converter */
    void *convert_ctx;
} kpti_host_ticks;

/* Replaces DELIVERY's converter by one that calls it with the host's ticks, if TICK_SOURCE is another clock
 * than the counter. CLOCK goes through START. Both, and OUT, must live as long as the delivery. */
void kpti_host_ticks_between(kpti_host_ticks *out, uint32_t tick_source, kpti_clock *clock,
                             const kpti_clock_point *start, kpt_delivery *delivery);

#endif
