/* gpu_names.h: what people, and Kineto, call the things that GPUs do. Pure functions. */
#ifndef KPTI_WRITERS_GPU_GPU_NAMES_H
#define KPTI_WRITERS_GPU_GPU_NAMES_H

#include "abi/kpt_gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KPTI_GPU_MOST_WORDS = 96 };

/* The name of an event that has none of its own; BUFFER, of MOST_WORDS bytes, may hold it. */
kpt_str kpti_gpu_words_for(const kpt_gpu_event *event, char *buffer);

/* The category of a kind: "kernel", "gpu_memcpy" … */
const char *kpti_gpu_category(uint32_t kind);

/* How much of a multiprocessor a kernel may fill, by its grid, registers and shared memory: what Kineto
 * calls the estimated achieved occupancy, in percent. 0: it can't be told. */
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
