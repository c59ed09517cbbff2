/* cuda_driver.h: the CUDA driver, if this process has it: asked, never initialised. */
#ifndef KPTI_GPU_TRACER_CUPTI_CUDA_DRIVER_H
#define KPTI_GPU_TRACER_CUPTI_CUDA_DRIVER_H

#include "abi/impl/kpti_impl.h"

typedef enum kpti_cuda_state {
    KPTI_CUDA_ABSENT = 0, /* no driver on this machine, as far as can be seen without loading it */
    KPTI_CUDA_UNUSED = 1, /* there is one, but nobody has initialised it here */
    KPTI_CUDA_NO_GPU = 2, /* it was initialised, and has no device */
    KPTI_CUDA_READY = 3
} kpti_cuda_state;

/* Looks anew each time. Any thread, no lock held. */
kpti_cuda_state kpti_cuda_look(void);

/* Waits until CONTEXT, a CUcontext, has nothing to do. Not while a stream of it is being captured. */
void kpti_cuda_wait(void *context);
/* The calling thread's, or NULL. */
void *kpti_cuda_current(void);

enum { KPTI_CUDA_MOST_DEVICES = 64, KPTI_CUDA_NAME = 96 };
/* Fills OUT with up to KPTI_CUDA_MOST_DEVICES; their names lie in NAMES. How many there are. */
uint32_t kpti_cuda_devices(kpt_gpu_device *out, char (*names)[KPTI_CUDA_NAME]);

#endif
