/* cuda_driver.h: queries the CUDA driver, if this process has it, and never initialises it. */
#ifndef KPTI_GPU_TRACER_CUPTI_CUDA_DRIVER_H
#define KPTI_GPU_TRACER_CUPTI_CUDA_DRIVER_H

#include "abi/impl/kpti_impl.h"

typedef enum kpti_cuda_state {
    KPTI_CUDA_ABSENT = 0, /* no driver was found, without loading it */
    KPTI_CUDA_UNUSED = 1, /* the driver exists, but this process has not initialised it */
    KPTI_CUDA_NO_GPU = 2, /* the driver is initialised, and has no device */
    KPTI_CUDA_READY = 3
} kpti_cuda_state;

/* Checks the state anew at each call. Any thread, no lock held. */
kpti_cuda_state kpti_cuda_look(void);

/* Waits until CONTEXT, a CUcontext, is idle. Must not be called while one of its streams is being captured. */
void kpti_cuda_wait(void *context);
/* Returns the calling thread's context, or NULL. */
void *kpti_cuda_current(void);

enum { KPTI_CUDA_MAX_DEVICES = 64, KPTI_CUDA_NAME = 96 };
/* Fills OUT with up to KPTI_CUDA_MAX_DEVICES devices, and NAMES with their names. Returns the number of
 * devices. */
uint32_t kpti_cuda_devices(kpt_gpu_device *out, char (*names)[KPTI_CUDA_NAME]);

#endif
