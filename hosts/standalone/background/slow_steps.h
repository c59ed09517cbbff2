/* slow_steps.h: detects a step of a program that took much longer than the steps before it.
 *
 * A step is measured by one source at a time. A better source replaces a worse one, and the clock begins anew: the spans
 * that the program marks as steps are better than the ends of an optimizer's steps. Of several optimizers one is the
 * clock, until it makes no step while the others make many. One thread at a time. */
#ifndef KPTI_HOSTS_STANDALONE_BACKGROUND_SLOW_STEPS_H
#define KPTI_HOSTS_STANDALONE_BACKGROUND_SLOW_STEPS_H

#include "writers/operators/step_source.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The steps of which the median is taken, and the least number of them before a step can be slow. */
enum { KPTI_STEPS_RECENT = 32, KPTI_STEPS_NEEDED = 5 };

/* So many steps of other optimizers, one after the other, make the last of them the clock. */
enum { KPTI_STEPS_OF_OTHERS = 64 };

/* Zeroed at first. */
typedef struct kpti_slow_steps {
    kpti_step_source source;
    uint64_t key;    /* which optimizer */
    uint32_t others; /* steps of other optimizers since its last one */
    uint64_t ended;  /* steps so far */
    uint64_t steps;  /* those of them whose begin is known */
    int64_t last_ns; /* the end of the last one; 0: none */
    uint64_t recent[KPTI_STEPS_RECENT];
} kpti_slow_steps;

/* A slow step. */
typedef struct kpti_slow_step {
    uint64_t number; /* from 1 */
    uint64_t ns;
    uint64_t median_ns; /* of the steps before it */
} kpti_slow_step;

/* A step has ended. Returns 1 and fills SLOW if it took more than PERCENT / 100 times the median, and at least a
 * millisecond. */
int kpti_slow_steps_span(kpti_slow_steps *clock, uint64_t ns, uint32_t percent,
                         kpti_slow_step *slow);
/* The same for a step of the optimizer KEY, which began with the end of its last one. NOW_NS is the time of a clock that
 * never goes back. */
int kpti_slow_steps_optimizer(kpti_slow_steps *clock, uint64_t key, int64_t now_ns,
                              uint32_t percent, kpti_slow_step *slow);

#ifdef __cplusplus
}
#endif
#endif
