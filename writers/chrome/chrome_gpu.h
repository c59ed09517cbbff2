/* chrome_gpu.h: what GPUs did as Chrome trace events, with the names and fields that Kineto gives them: a
 * process for each device, a thread for each stream, calls of CUDA on the threads that made them, arrows
 * from these to kernels. A kernel's Python stack is its "sf", a node of "stackFrames".
 *
 * Of several processes in a file each has devices of its own, whose numbers no other process has; and so it
 * is with the numbers of arrows. Stacks stand at the end of the file: those that are the same in several
 * processes, as ranks have them, are kept once. */
#ifndef KPTI_WRITERS_CHROME_CHROME_GPU_H
#define KPTI_WRITERS_CHROME_CHROME_GPU_H

#include "writers/format/format.h"

/* Of all processes: what stands at the end of a file. */
typedef struct kpti_chrome_gpu {
    kpti_gpu_log stacks; /* texts and frames; no events */
    struct kpti_chrome_device *devices;
    uint32_t device_capacity;
    uint32_t device_count;
    uint64_t events;
    kpti_gpu_counts counts;
} kpti_chrome_gpu;

void kpti_chrome_gpu_init(kpti_chrome_gpu *gpu, const kpti_heap *heap);
/* Again, too, for who fails while a process is ended. */
void kpti_chrome_gpu_free(kpti_chrome_gpu *gpu);

/* All events of the writer's process, each with a comma before it. KPT_OK, KPT_E_MEMORY or KPT_E_LIMIT. */
kpt_status kpti_chrome_gpu_events(kpti_chrome_gpu *gpu, kpti_writer *writer);

/* "deviceProperties", and where there was a GPU what was counted and "stackFrames", with a comma before. */
void kpti_chrome_gpu_tail(kpti_chrome_gpu *gpu, kpti_writer *writer);

#endif
