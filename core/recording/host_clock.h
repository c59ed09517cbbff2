/* host_clock.h: ticks as the host counts them. Events are stamped with the processor's counter, which costs
 * least. A host that names one of the system's clocks gets, for its converter, what that clock showed then,
 * by our own: right within the tens of nanoseconds that reading both takes. One that reads a clock of its own
 * (KPT_TICKS_HOST) needs none of this: its events have its ticks. */
#ifndef KPTI_CORE_RECORDING_HOST_CLOCK_H
#define KPTI_CORE_RECORDING_HOST_CLOCK_H

#include "abi/kpt_host.h"
#include "core/recording/clock.h"

typedef struct kpti_host_ticks {
    kpti_clock *clock;
    int64_t shift_ns;       /* from Unix time to the host's clock */
    kpt_convert_fn convert; /* the host's */
    void *convert_ctx;
} kpti_host_ticks;

/* Puts itself in front of DELIVERY's converter, if that is for ticks of another clock than the counter.
 * CLOCK goes through START; both, and OUT, must live as long as the delivery. */
void kpti_host_ticks_between(kpti_host_ticks *out, uint32_t tick_source, kpti_clock *clock,
                             const kpti_clock_point *start, kpt_delivery *delivery);

#endif
