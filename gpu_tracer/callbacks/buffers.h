/* buffers.h: the buffers that CUPTI writes its records to. The two callbacks are for
 * cuptiActivityRegisterCallbacks. */
#ifndef KPTI_GPU_TRACER_CALLBACKS_BUFFERS_H
#define KPTI_GPU_TRACER_CALLBACKS_BUFFERS_H

#include "gpu_tracer/session/gpu_session.h"

void CUPTIAPI kpti_buffer_requested(uint8_t **buffer, size_t *size, size_t *most_records);
void CUPTIAPI kpti_buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer,
                                    size_t size, size_t valid_size);
/* Frees the idle buffers. */
void kpti_buffers_trim(kpti_gpu_session *s);
/* Called in the child of a fork. */
void kpti_buffers_forked(void);

#endif
