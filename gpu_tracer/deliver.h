/* deliver.h: delivers a recording to the sink of the host. */
#ifndef KPTI_GPU_TRACER_DELIVER_H
#define KPTI_GPU_TRACER_DELIVER_H

#include "gpu_tracer/session/gpu_session.h"

kpt_status kpti_deliver(kpti_gpu_session *s, kpt_gpu_batch_fn sink, void *sink_ctx,
                        kpti_error *error);

#endif
