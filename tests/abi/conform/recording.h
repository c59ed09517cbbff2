/* recording.h: a copy of one delivery, for the rules to check afterwards. Reads batches by stride, as a
 * host must, and so works with plugins of a later minor version. */
#ifndef RECORDING_H
#define RECORDING_H

#include "tests/abi/conform/conform.h"

enum { RECORDING_MAX = 100000, RECORDING_MAX_TABLE = 4096 };

typedef struct recording {
    kpt_activity *activities; /* in the order of delivery */
    uint32_t activity_count;
    kpt_name names[RECORDING_MAX_TABLE]; /* strings still the plugin's */
    uint32_t name_count;
    kpt_thread threads[RECORDING_MAX_TABLE];
    uint32_t thread_count;
    uint32_t batches;
    uint32_t largest_batch;
    uint32_t late_names;   /* activities whose name or thread was not delivered before them */
    const char *malformed; /* what is wrong with a batch itself, or NULL */
} recording;

/* Delivers a stopped tracer's events in ORDER. The rule is not reached if get_events fails or there are no
 * events. The child process never frees the recording. */
recording *recording_take(conform *c, const kpt_tracer *tracer, uint32_t order);
/* The same with the rule's own delivery, whose sink and sink_ctx are set here. */
recording *recording_take_with(conform *c, const kpt_tracer *tracer, kpt_delivery delivery);

/* Returns 1 if both hold the same activities, except for ids, order and phase. */
int recording_same(const recording *a, const recording *b);

#endif
