/* gpu_names.h: names and categories of GPU activities, as Kineto uses them. Pure functions. */
#ifndef KPTI_WRITERS_GPU_GPU_NAMES_H
#define KPTI_WRITERS_GPU_GPU_NAMES_H

#include "abi/kpt_gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KPTI_GPU_MAX_WORDS = 96 };

/* Returns the name of an event that has none of its own. BUFFER, of KPTI_GPU_MAX_WORDS bytes, may hold it. */
kpt_str kpti_gpu_words_for(const kpt_gpu_event *event, char *buffer);

/* Returns the category of a kind: "kernel", "gpu_memcpy" … */
const char *kpti_gpu_category(uint32_t kind);

/* How much of a multiprocessor a kernel can fill, by its grid, registers and shared memory. Kineto calls this
 * the estimated achieved occupancy, in percent. 0 if it is not known. */
typedef struct kpti_gpu_fill {
    double blocks; /* per multiprocessor */
    double warps;
    int occupancy;
} kpti_gpu_fill;
kpti_gpu_fill kpti_gpu_fill_of(const kpt_gpu_event *kernel, const kpt_gpu_device *device);

#ifdef __cplusplus
}
#endif
#endif
