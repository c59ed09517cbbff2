/* unix_clock.h: the clock of GPU records. CUPTI calls us for timestamps, so its records have the clock of
 * the trace: Unix time at the start of recording, plus the progress of the monotonic clock, as in
 * python_tracer. A CUPTI before 11.6 can't call us; its clock is compared with ours at both ends. */
#ifndef KPTI_GPU_TRACER_CUPTI_UNIX_CLOCK_H
#define KPTI_GPU_TRACER_CUPTI_UNIX_CLOCK_H

#include "gpu_tracer/cupti/cupti_library.h"

typedef struct kpti_compared {
    uint64_t at;   /* CUPTI's time */
    int64_t ahead; /* our clock minus CUPTI's */
    int64_t doubt; /* maximum error of ahead */
} kpti_compared;

typedef struct kpti_unix_clock {
    int asked; /* CUPTI calls us, so its times are ours and nothing is compared */
    kpti_compared first;
    int64_t length; /* from the first comparison to the last */
    int64_t drift;  /* change of ahead over length */
} kpti_unix_clock;

/* Called before any kind of activity is enabled. */
void kpti_unix_clock_begin(kpti_unix_clock *clock, const kpti_cupti *cupti);
/* Compares the clocks again. */
void kpti_unix_clock_compare(kpti_unix_clock *clock, const kpti_cupti *cupti);
/* Called at the end of recording. kpti_unix_now then returns the system's time. */
void kpti_unix_clock_end(void);
/* Returns a record's time as Unix time. 0, which is CUPTI's value for unknown, stays 0. */
int64_t kpti_unix_clock_of(const kpti_unix_clock *clock, uint64_t time);
/* Returns the current time on the same clock. */
uint64_t kpti_unix_now(void);

#endif
