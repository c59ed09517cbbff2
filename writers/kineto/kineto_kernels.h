/* kineto_kernels.h: what GPUs did in a trace of Kineto, and the calls that launched it: so that text can be put
 * into the arguments of each kernel, copy and set of memory. All else stays byte for byte.
 *
 *   read ──> launches by time: the caller gives each a stack ──> sort ──> copy ──> free
 *
 * 24 bytes for each launch, and for each thing that a GPU did. One thread at a time; no GIL. */
#ifndef KPTI_WRITERS_KINETO_KINETO_KERNELS_H
#define KPTI_WRITERS_KINETO_KINETO_KERNELS_H

#include "writers/encode/escaped_strings.h"
#include "writers/kineto/kineto_file.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What our text has among an event's arguments: an event that has it already is left alone. */
#define KPTI_KINETO_STACK "Python stack"

/* A call of CUDA. */
typedef struct kpti_kineto_launch {
    int64_t time_ns; /* Unix time */
    uint64_t correlation;
    uint32_t tid;   /* the system's */
    uint32_t stack; /* the caller's number of a text; 0: none */
} kpti_kineto_launch;

/* An event of a GPU. */
typedef struct kpti_kineto_work {
    uint64_t offset; /* in the file: behind the last of its arguments */
    uint64_t correlation;
    uint32_t is_first; /* there are no arguments */
} kpti_kineto_work;

/* Begins as zeroes with a heap. */
typedef struct kpti_kineto_gpu {
    kpti_heap heap;
    kpti_kineto_launch *launches;
    kpti_kineto_work *works; /* by offset */
    uint32_t launch_count, launch_capacity;
    uint32_t work_count, work_capacity;
} kpti_kineto_gpu;

/* Reads all events of FILE. 0, or an errno: EBADMSG where they are no JSON. GPU is to be freed in any
 * case. Afterwards launches lie in the order of their times. */
int kpti_kineto_gpu_read(kpti_kineto_gpu *gpu, const kpti_kineto_file *file);

/* Has copy find the launches by their correlation. */
void kpti_kineto_gpu_sort(kpti_kineto_gpu *gpu);

/* Copies the file up to the end of its events, with the texts that are members of an object, without a
 * comma around them. 0 or an errno. */
int kpti_kineto_gpu_copy(const kpti_kineto_gpu *gpu, const kpti_kineto_file *file,
                         kpti_out_file *out, const kpti_fragments *stacks);

void kpti_kineto_gpu_free(kpti_kineto_gpu *gpu);

#ifdef __cplusplus
}
#endif
#endif
