/* step_source.h: how the steps of a program are recognised, while it runs (slow_steps.h) and in its recording
 * (step_finder.h). */
#ifndef KPTI_WRITERS_OPERATORS_STEP_SOURCE_H
#define KPTI_WRITERS_OPERATORS_STEP_SOURCE_H

#include <string.h>

#include "abi/kpt_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A larger number is a better source, and a program's steps are those of its best one. */
typedef enum kpti_step_source {
    KPTI_STEPS_OF_NOTHING = 0,
    KPTI_STEPS_OF_OPTIMIZER = 1, /* from the end of one optimizer step to the end of the next */
    KPTI_STEPS_OF_SPANS = 2,     /* a span that the program names "step" */
    KPTI_STEPS_OF_PROFILER = 3   /* an annotation ProfilerStep#N; only in a recording */
} kpti_step_source;

/* Returns whether a span with this name is a step of the program. */
static inline int kpti_is_step_span(kpt_str name)
{
    return name.size == 4 && memcmp(name.data, "step", 4) == 0;
}

#ifdef __cplusplus
}
#endif
#endif
