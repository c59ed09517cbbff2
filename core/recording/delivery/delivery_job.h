/* delivery_job.h: one delivery: the recording, the host's request, and the clock. The caller of kpti_deliver
 * owns it. */
#ifndef KPTI_CORE_RECORDING_DELIVERY_DELIVERY_JOB_H
#define KPTI_CORE_RECORDING_DELIVERY_DELIVERY_JOB_H

#include "abi/impl/kpti_impl.h"
#include "core/recording/recording.h"

/* delivery->convert, or own_convert where the delivery has none, converts ticks to nanoseconds. */
typedef struct kpti_delivery_job {
    const kpti_env *env;
    const kpti_recording *recording;
    const kpt_delivery *delivery; /* complete and checked; order and sink are valid */
    kpt_convert_fn own_convert;   /* used where delivery->convert is NULL */
    void *own_convert_ctx;
    uint64_t repairs; /* out: repairs that replay made */
} kpti_delivery_job;

#endif
