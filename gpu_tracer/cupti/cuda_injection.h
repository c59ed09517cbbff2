/* cuda_injection.h: sets the environment variables by which CUDA loads this library when a process
 * initialises CUDA. One thread at a time. */
#ifndef KPTI_GPU_TRACER_CUPTI_CUDA_INJECTION_H
#define KPTI_GPU_TRACER_CUPTI_CUDA_INJECTION_H

#include "abi/impl/kpti_impl.h"

/* Returns KPT_OK, KPT_E_BUSY if another tool has set the variable, KPT_E_UNSUPPORTED or KPT_E_MEMORY. */
kpt_status kpti_injection_set(kpti_error *error);
void kpti_injection_clear(void);
/* CUPTI_PATH is the library that NVTX loads, or NULL if it is not known yet. */
void kpti_injection_nvtx(const char *cupti_path);

#endif
