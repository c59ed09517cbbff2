/* chrome_gpu.h: GPU activities as Chrome trace events, with the names and fields that Kineto writes: a process
 * for each device, a thread for each stream, CUDA calls on the threads that made them, and arrows from them to
 * kernels. A kernel's Python stack is its "sf", a node of "stackFrames".
 *
 * If a file holds several processes, each has its own devices, with numbers that no other process uses; the
 * same holds for the numbers of arrows. Stacks are written at the end of the file. Stacks that are equal in
 * several processes, as those of ranks are, are stored once. */
#ifndef KPTI_WRITERS_CHROME_CHROME_GPU_H
#define KPTI_WRITERS_CHROME_CHROME_GPU_H

#include "writers/format/format.h"

typedef struct kpti_chrome_device {
    uint32_t pid; /* the process that used it */
    uint32_t name;
    kpt_gpu_device known;
} kpti_chrome_device;

/* Returns the members of an event's arguments that name where it was launched, without a comma before or after, or an
 * empty text. */
typedef kpti_fragment (*kpti_chrome_launched_fn)(void *ctx, const kpt_gpu_event *event);

/* The data of all processes, written at the end of the file. */
typedef struct kpti_chrome_gpu {
    /* For work on a device, in place of the stacks of the log, which the file then does not have. NULL: none */
    kpti_chrome_launched_fn launched;
    void *launched_ctx;
    kpti_gpu_log stacks; /* texts and frames only, no events */
    kpti_chrome_device *devices;
    uint32_t device_capacity;
    uint32_t device_count;
    uint64_t events;
    kpti_gpu_counts counts;
} kpti_chrome_gpu;

void kpti_chrome_gpu_init(kpti_chrome_gpu *gpu, const kpti_heap *heap);
/* May be called again, after a failure while a process is ended. */
void kpti_chrome_gpu_free(kpti_chrome_gpu *gpu);

/* Writes one device as an element of "deviceProperties". NAME is its name. */
void kpti_chrome_gpu_put_device(kpti_writer *writer, const kpt_gpu_device *device, kpt_str name);

/* Writes all events of the writer's process, each with a comma before it. Returns KPT_OK, KPT_E_MEMORY or
 * KPT_E_LIMIT. */
kpt_status kpti_chrome_gpu_events(kpti_chrome_gpu *gpu, kpti_writer *writer);

/* Writes "deviceProperties" and, if there was a GPU, the counts and "stackFrames", with a comma before each. */
void kpti_chrome_gpu_tail(kpti_chrome_gpu *gpu, kpti_writer *writer);

#endif
