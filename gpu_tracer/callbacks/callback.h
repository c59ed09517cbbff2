/* callback.h: the callback that CUPTI runs inside the CUDA calls of the program. */
#ifndef KPTI_GPU_TRACER_CALLBACKS_CALLBACK_H
#define KPTI_GPU_TRACER_CALLBACKS_CALLBACK_H

#include "gpu_tracer/cupti/cupti_library.h"

/* A CUpti_CallbackFunc. */
void CUPTIAPI kpti_callback(void *ctx, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                            const void *data);
/* Waits until no thread is inside the callback. */
void kpti_callback_drain(void);

#endif
