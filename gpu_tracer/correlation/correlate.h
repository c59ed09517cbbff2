/* correlate.h: joins the records of one operation: a kernel with the call that started it, its thread, its
 * stack and the external correlation. Only the collecting thread calls it. */
#ifndef KPTI_GPU_TRACER_CORRELATION_CORRELATE_H
#define KPTI_GPU_TRACER_CORRELATION_CORRELATE_H

#include "gpu_tracer/session/gpu_session.h"

/* Takes all records and launches since the last call. */
void kpti_join_absorb(kpti_gpu_session *s);
/* Completes EVENT. */
void kpti_join_event(kpti_gpu_session *s, kpt_gpu_event *event);
/* Makes the event of a call. Returns 0 if the runtime call around it has its event already. */
int kpti_join_call(kpti_gpu_session *s, const kpti_gpu_call *call, kpt_gpu_event *out);

#endif
