/* unix_clock.h: the clock of records. CUPTI asks us what time it is, so its records come on the trace's own
 * clock: Unix time as it was when recording began, from where the monotonic clock counts, as in
 * python_tracer. Where CUPTI can't ask (before 11.6) its clock is compared with ours at both ends. */
#ifndef KPTI_GPU_TRACER_CUPTI_UNIX_CLOCK_H
#define KPTI_GPU_TRACER_CUPTI_UNIX_CLOCK_H

#include "gpu_tracer/cupti/cupti_library.h"

typedef struct kpti_compared {
    uint64_t at;   /* CUPTI's time */
    int64_t ahead; /* how far ours was ahead … */
    int64_t doubt; /* … give or take this */
} kpti_compared;

typedef struct kpti_unix_clock {
    int asked; /* CUPTI asks us: its times are ours, and nothing is compared */
    kpti_compared first;
    int64_t length; /* from the first comparison to the last … */
    int64_t drift;  /* … and how much further ahead ours was then */
} kpti_unix_clock;

/* Before any kind of activity is enabled. */
void kpti_unix_clock_begin(kpti_unix_clock *clock, const kpti_cupti *cupti);
/* Compares once more. */
void kpti_unix_clock_compare(kpti_unix_clock *clock, const kpti_cupti *cupti);
/* Recording has ended: who asks from now on gets the system's time. */
void kpti_unix_clock_end(void);
/* What a record's time is in Unix time; 0 stays 0, which is CUPTI's for unknown. */
int64_t kpti_unix_clock_of(const kpti_unix_clock *clock, uint64_t time);
/* Now, on the same clock. */
uint64_t kpti_unix_now(void);

#endif
