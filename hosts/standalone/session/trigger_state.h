/* trigger_state.h: the state of session_triggers.h. */
#ifndef KPTI_HOSTS_STANDALONE_SESSION_TRIGGER_STATE_H
#define KPTI_HOSTS_STANDALONE_SESSION_TRIGGER_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "hosts/standalone/background/slow_steps.h"

enum { KPTI_MAX_REASON = 200, KPTI_MAX_PER_HOUR = 60 };

/* Zeroed at first. `lock` is held for a few instructions only. */
typedef struct kpti_triggers {
    uint64_t hang_ns;       /* 0: hangs are not watched for */
    uint32_t step_percent;  /* 0: neither are slow steps */
    uint32_t most_per_hour; /* not 0 */

    _Atomic int is_on; /* the service thread runs, and there is a trigger */
    pthread_mutex_t lock;
    kpti_slow_steps steps;
    char asked[KPTI_MAX_REASON]; /* a dump that was asked for and is not written yet; empty: none */
    int asked_by_others;
    char reason[KPTI_MAX_REASON]; /* of the last dump that this process triggered itself */
    uint32_t own;                 /* the number of these */

    /* Used by the service thread only. */
    uint64_t events;                     /* of the tracer, when it was last looked at */
    uint64_t ended;                      /* steps, at the same time */
    int64_t changed_ns;                  /* when the program last did something */
    int is_hanging;                      /* the present hang is in a dump */
    int is_over_limit;                   /* a dump was left out */
    int has_reported;                    /* that is printed */
    int64_t times_ns[KPTI_MAX_PER_HOUR]; /* of the last dumps */
    uint32_t dumps;
} kpti_triggers;

#endif
