/* kineto_kernels.h: finds the GPU activities in a Kineto trace and the calls that launched them, so that text
 * can be inserted into the arguments of each kernel, memory copy and memory set. All other bytes are kept.
 *
 *   read ──> launches by time: the caller assigns each a stack ──> sort ──> copy ──> free
 *
 * It takes 24 bytes for each launch and for each GPU activity. One thread at a time; no GIL. */
#ifndef KPTI_WRITERS_KINETO_KINETO_KERNELS_H
#define KPTI_WRITERS_KINETO_KINETO_KERNELS_H

#include "writers/encode/escaped_strings.h"
#include "writers/kineto/kineto_file.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The key of our text among an event's arguments. An event that already has it is not changed. */
#define KPTI_KINETO_STACK "Python stack"

/* A CUDA call. */
typedef struct kpti_kineto_launch {
    int64_t time_ns; /* Unix time */
    uint64_t correlation;
    uint32_t tid;   /* the OS thread id */
    uint32_t stack; /* the caller's number of a text; 0: no text */
} kpti_kineto_launch;

/* A GPU activity. */
typedef struct kpti_kineto_work {
    uint64_t offset; /* in the file: the end of its last argument */
    uint64_t correlation;
    uint32_t is_first; /* it has no arguments */
} kpti_kineto_work;

/* Zeroed at first, except for heap. */
typedef struct kpti_kineto_gpu {
    kpti_heap heap;
    kpti_kineto_launch *launches;
    kpti_kineto_work *works; /* in the order of offset */
    uint32_t launch_count, launch_capacity;
    uint32_t work_count, work_capacity;
} kpti_kineto_gpu;

/* Reads all events of FILE. Returns 0 or an errno; EBADMSG if they are not valid JSON. The caller must call
 * kpti_kineto_gpu_free in any case. The launches are then in time order. */
int kpti_kineto_gpu_read(kpti_kineto_gpu *gpu, const kpti_kineto_file *file);

/* Adds a launch that is in no file. Returns KPT_OK, KPT_E_MEMORY or KPT_E_LIMIT. After the last one,
 * kpti_kineto_gpu_by_time sorts the launches as kpti_kineto_gpu_read does. */
kpt_status kpti_kineto_gpu_add(kpti_kineto_gpu *gpu, const kpti_kineto_launch *launch);
void kpti_kineto_gpu_by_time(kpti_kineto_gpu *gpu);

/* Sorts the launches by correlation, for kpti_kineto_gpu_copy and kpti_kineto_gpu_stack. */
void kpti_kineto_gpu_sort(kpti_kineto_gpu *gpu);

/* Returns the stack of the launch with this correlation, or 0. */
uint32_t kpti_kineto_gpu_stack(const kpti_kineto_gpu *gpu, uint64_t correlation);

/* Copies the file up to the end of its events, with the texts inserted. The texts are members of an object,
 * without a comma before or after. Returns 0 or an errno. */
int kpti_kineto_gpu_copy(const kpti_kineto_gpu *gpu, const kpti_kineto_file *file,
                         kpti_out_file *out, const kpti_fragments *stacks);

void kpti_kineto_gpu_free(kpti_kineto_gpu *gpu);

#ifdef __cplusplus
}
#endif
#endif
