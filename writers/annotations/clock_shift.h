/* clock_shift.h: converts times of one process to the clock of a file of several processes. */
#ifndef KPTI_WRITERS_ANNOTATIONS_CLOCK_SHIFT_H
#define KPTI_WRITERS_ANNOTATIONS_CLOCK_SHIFT_H

#include <stdint.h>

/* NS becomes NS + offset_ns + (NS - anchor_ns) * drift. */
typedef struct kpti_clock_shift {
    int64_t offset_ns;
    int64_t anchor_ns;
    double drift;
} kpti_clock_shift;

static inline int kpti_is_shift(const kpti_clock_shift *shift)
{
    return shift->offset_ns != 0 || shift->drift != 0;
}

static inline int64_t kpti_shifted(const kpti_clock_shift *shift, int64_t ns)
{
    /* A file may contain any time. Results out of bounds wrap. */
    const double max = 9e18;
    const double drifted =
        (double)(int64_t)((uint64_t)ns - (uint64_t)shift->anchor_ns) * shift->drift;
    const int64_t drift_ns = drifted > -max && drifted < max ? (int64_t)drifted : 0;
    return (int64_t)((uint64_t)ns + (uint64_t)shift->offset_ns + (uint64_t)drift_ns);
}

#endif
