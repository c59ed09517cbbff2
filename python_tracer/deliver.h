/* deliver.h: a recording as batches of activities, in the three orders of kpt_activity.h. */
#ifndef KPTI_DELIVER_H
#define KPTI_DELIVER_H

#include "replay.h"

/* The delivery's convert, or this one, turns ticks into nanoseconds. */
typedef struct kpti_delivery_job {
    const kpti_env *env;
    const kpti_recording *recording;
    const kpt_delivery *delivery;  /* checked and whole; order and sink are valid */
    kpt_convert_fn own_convert;    /* used where delivery->convert is NULL */
    void *own_convert_ctx;
    uint64_t repairs;              /* out: made by replay */
} kpti_delivery_job;

/* Delivers it all. KPT_OK, KPT_E_MEMORY, or what the sink answered. No GIL; memory grows with the
 * depth of stacks and with the number of functions, and in order START by 16 bytes a call. */
kpt_status kpti_deliver(kpti_delivery_job *job, kpti_error *error);

#endif
