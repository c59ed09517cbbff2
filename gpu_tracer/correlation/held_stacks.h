/* held_stacks.h: the stacks that were delivered. Their numbers stay valid until destroy. */
#ifndef KPTI_GPU_TRACER_CORRELATION_HELD_STACKS_H
#define KPTI_GPU_TRACER_CORRELATION_HELD_STACKS_H

#include "gpu_tracer/session/gpu_session.h"

void kpti_stacks_release(const kpti_gpu_session *s, kpt_traceback traceback);
/* Called before LAUNCH's stack is delivered. Returns 0 if there is no memory; the stack must then not be
 * delivered. */
int kpti_stacks_hold(kpti_gpu_session *s, kpti_launch *launch);
void kpti_stacks_free(kpti_gpu_session *s);

#endif
