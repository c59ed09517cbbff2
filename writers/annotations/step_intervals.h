/* step_intervals.h: when the steps of a program ran, for tables with a row for each step. */
#ifndef KPTI_WRITERS_ANNOTATIONS_STEP_INTERVALS_H
#define KPTI_WRITERS_ANNOTATIONS_STEP_INTERVALS_H

#include <stdint.h>

/* A time interval from begin_ns to before end_ns, in the tracer's time. */
typedef struct kpti_profile_step {
    int64_t begin_ns;
    int64_t end_ns;
} kpti_profile_step;

/* Returns the index + 1 of the step that contains NS, or 0 if none does. The COUNT steps are sorted and do not
 * overlap. */
static inline uint32_t kpti_profile_step_at(const kpti_profile_step *steps, uint32_t count,
                                            int64_t ns)
{
    uint32_t low = 0;
    uint32_t high = count; /* steps from here on begin later */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (steps[middle].begin_ns <= ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low && ns < steps[low - 1].end_ns ? low : 0;
}

#endif
