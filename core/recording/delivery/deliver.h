/* deliver.h: a recording as batches of activities, in the three orders of kpt_activity.h.
 *
 * Ids are 1, 2, 3 … without gaps in all orders: in order THREAD by threads and, within one, as calls
 * begin; in the others as calls begin.
 * Where the delivery has an end_ns, what was open at the end of the last run ends there, what would
 * outlive it is cut and flagged CLAMPED, and what began after it is not delivered. Where the recording
 * has a min_duration_ns, calls that are then shorter are not delivered. */
#ifndef KPTI_CORE_RECORDING_DELIVERY_DELIVER_H
#define KPTI_CORE_RECORDING_DELIVERY_DELIVER_H

#include "core/recording/replay/replay.h"

/* The delivery's convert, or this one, turns ticks into nanoseconds. */
typedef struct kpti_delivery_job {
    const kpti_env *env;
    const kpti_recording *recording;
    const kpt_delivery *delivery; /* checked and whole; order and sink are valid */
    kpt_convert_fn own_convert;   /* used where delivery->convert is NULL */
    void *own_convert_ctx;
    uint64_t repairs; /* out: made by replay */
} kpti_delivery_job;

/* Delivers it all. KPT_OK, KPT_E_MEMORY, or what the sink answered. No GIL; memory grows with the
 * depth of stacks and with the number of functions, in order START by 9 bytes a call, else with a least
 * duration by 1. These two go through the events twice. */
kpt_status kpti_deliver(kpti_delivery_job *job, kpti_error *error);

#endif
