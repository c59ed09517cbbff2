/* gpu_recording.h: starts and stops a recording.
 *
 *   made ──start──> waiting ──CUDA is initialised──> recording ──stop──> stopped
 *             └──────── if CUDA is initialised ──────────^
 */
#ifndef KPTI_GPU_TRACER_GPU_RECORDING_H
#define KPTI_GPU_TRACER_GPU_RECORDING_H

#include "gpu_tracer/session/gpu_session.h"

kpt_status kpti_session_start(kpti_gpu_session *s, kpti_error *error);
kpt_status kpti_session_stop(kpti_gpu_session *s, kpti_error *error);
/* Called in the child of a fork. */
void kpti_session_forked(kpti_gpu_session *s);
/* Called on the thread that initialises CUDA. */
void kpti_session_cuda_begins(void);

#endif
